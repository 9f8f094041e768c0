"""The wiring to kopf: its settings, and the few handlers that there are. They fill the Store and put keys
on the queue, and do nothing else: an error in them is logged and never tried again.
"""

import logging
from dataclasses import replace
from typing import Any, cast

import kopf

from .app import App
from .kinds import KINDS, Kind
from .no_memory import NoDiffs, NoProgress
from .objects import Json, key_of, uid_of


async def run(app: App) -> None:
    """Until a signal, or until a part of the operator has died."""
    await kopf.operator(
        registry=_registry(app),
        settings=_settings(),
        clusterwide=True,
        standalone=True,
        stop_flag=app.broken,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    # The API server sends our children only. Without this, every pod of the cluster would pass through this
    # process.
    for kind in KINDS:
        if kind.selector is not None:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.selector
    settings.watching.server_timeout = 600
    settings.watching.reconnect_backoff = 0.1
    # Lists that arrive as a stream lose objects when the connection drops in the middle.
    settings.watching.initial_streaming = False
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    # A minute in all, as long as an API server takes to restart, but in small steps: kopf's own grow to 21
    # s, in which nothing would be seen of a server that is back.
    settings.networking.error_backoffs = (0.25, 0.5, 1, 1, 2, 2, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 5)
    # Fewer workers than objects would wait for each other for ever while the first lists are read.
    settings.queueing.worker_limit = None
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = NoDiffs()
    settings.persistence.progress_storage = NoProgress()
    return settings


def _registry(app: App) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    _add_activities(registry, app)
    _add_handlers(registry, app)
    return registry


# Async, all of them: for a function that is not, kopf would start a thread.


def _add_activities(registry: kopf.OperatorRegistry, app: App) -> None:
    @kopf.on.login(registry=registry)
    async def login(**context: Any) -> kopf.ConnectionInfo | None:
        account = kopf.login_with_service_account(**context)
        if account is None:
            return kopf.login_with_kubeconfig(**context)
        # By address: kopf would ask the cluster's DNS, which the operator must not depend on.
        return replace(account, server=app.api_server)

    # Not tried again by kopf, which would wait a minute: to be restarted is quicker.
    @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    async def startup(**_: Any) -> None:
        try:
            await app.start()
        except Exception as error:
            app.cannot_start = error
            # kopf's cleanup comes only after a start-up that has succeeded.
            await app.stop()
            raise

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        await app.stop()


def _add_handlers(registry: kopf.OperatorRegistry, app: App) -> None:
    for kind in KINDS:
        _add_kind(registry, app, kind)


def _add_kind(registry: kopf.OperatorRegistry, app: App, kind: Kind) -> None:
    cache = app.store.cache(kind)
    # UIDs of objects of which the watch has brought a version that we did not know. The others are our own
    # writes, whose answers we had: to look at those again is half of the work of a storm.
    news: set[str] = set()

    # Index functions run for every object before the first event handler runs for any: so no decision is made
    # before all lists are read.
    @kopf.index(kind.group, kind.version, kind.plural, registry=registry, id=f"known_{kind.plural}")
    async def known(body: kopf.Body, **_: Any) -> None:
        obj = _plain(body)
        if cache.observe(obj):
            news.add(uid_of(obj))

    @kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"{kind.plural}_event")
    async def event(event: kopf.RawEvent, **_: Any) -> None:
        obj = cast("Json", event["object"])
        deleted = event["type"] == "DELETED"
        if deleted:
            app.store.deleted(kind, key_of(obj), uid=uid_of(obj))
        app.seen(kind, obj, news=deleted or uid_of(obj) in news)
        news.discard(uid_of(obj))


def _plain(body: kopf.Body) -> Json:
    # kopf wraps the top level only; below it are the dicts of the JSON that was read.
    return dict(body)


def configure_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", force=True
    )
    # A line for every event of every object.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
