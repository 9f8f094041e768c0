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
    # Of each kind, one page is in memory as a whole.
    settings.watching.chunk_size = 200
    settings.networking.request_timeout = 30
    # A minute in all, as long as an API server takes to restart, but in small steps: kopf's own grow to 21
    # s, in which nothing would be seen of a server that is back.
    settings.networking.error_backoffs = (0.25, 0.5, 1, 1, 2, 2, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 5)
    # Fewer workers than objects would wait for each other for ever while the first lists are read.
    settings.queueing.worker_limit = None
    # For so long a worker keeps its object's last event, with all that we do not want of it: after a list, of
    # every object there is.
    settings.queueing.idle_timeout = 0.1
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

    # Not kopf.index, which would hold back the first event of each object until all lists are read: there
    # every object wakes all that wait, and 2,000 sandboxes took minutes. Our own workers wait instead.
    @kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"{kind.plural}_event")
    async def event(event: kopf.RawEvent, **_: Any) -> None:
        obj = cast("Json", event["object"])
        if event["type"] is None:
            app.relisted()
        if event["type"] == "DELETED":
            app.store.deleted(kind, key_of(obj), uid=uid_of(obj))
            news = True
        else:
            # A version that we know is our own write, whose answer we had: to look at those again would be
            # half of the work of a storm.
            news = cache.observe(obj)
        app.seen(kind, obj, news=news)


def configure_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", force=True
    )
    # A line for every event of every object.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
