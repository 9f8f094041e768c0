"""From a sandbox's name to a pod that answers. The table is asked first; a client can be faster than our
watch, so a name that it does not know is looked up once at the API server. A sandbox that sleeps is woken and
waited for, one that is starting gets a moment.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from sandpod_crds import errors as api
from sandpod_crds import paths
from sandpod_crds.kube import Kube
from sandpod_crds.names import Phase

from .audit import Exchange
from .errors import Conflict, NotReady, NotStarting, PodLeaving, Unchecked, unknown_sandbox
from .metrics import Metrics
from .routes import Key, Route, RouteTable
from .settings import Settings
from .waiting import Full, LeavingPods, Patience, Room
from .waking import Step, Waker, step_for


class Resolver:
    def __init__(self, *, kube: Kube, table: RouteTable, settings: Settings, metrics: Metrics) -> None:
        self._kube = kube
        self._table = table
        self._metrics = metrics
        self._waker = Waker(kube=kube, metrics=metrics)
        self._leaving = LeavingPods()
        self._room = Room(
            per_sandbox=settings.max_waiting_per_sandbox,
            per_namespace=settings.max_waiting_per_namespace,
            total=settings.max_waiting,
        )
        self._briefly = settings.ready_wait_seconds
        self._long = settings.wake_wait_seconds

    @property
    def waiting(self) -> int:
        return self._room.waiting

    async def ready_route(
        self,
        *,
        namespace: str,
        name: str,
        patience: Patience,
        exchange: Exchange,
        longest: float | None = None,
        in_setup: bool = False,
    ) -> Route:
        """A pod that was ready when we last heard of it; with `in_setup`, or that runs its setup. Wakes the
        sandbox when it sleeps, so only for somebody who may. `longest` bounds the wait further.
        """
        key = (namespace, name)
        known = self._table.get(key)
        route = known or await self._look_up(namespace=namespace, name=name)
        step_of = partial(self._step, in_setup=in_setup)
        step = step_of(route)
        if step is Step.GO:
            return route
        if step is Step.REFUSE:
            self._refuse(key, route)
        limit = self._long if longest is None else min(longest, self._long)
        try:
            with self._room.enter(key):
                begun = time.perf_counter()
                try:
                    return await self._wait(
                        key, route, patience, limit=limit, listed=known is not None, step_of=step_of
                    )
                finally:
                    self._waited(exchange, step, seconds=time.perf_counter() - begun)
        except Full as full:
            self._metrics.count("wait_refusals_total", cause=full.cause)
            raise
        finally:
            if self._room.is_empty(key):
                self._waker.forget(key)

    def standing(self, key: Key) -> contextlib.AbstractContextManager[None]:
        """A place in the waiting room, for whatever a request waits for besides its sandbox."""
        return self._room.enter(key)

    async def current(self, *, namespace: str, name: str) -> Route:
        """As it is, whatever that is: nothing is woken and nothing waited for."""
        return self._table.get((namespace, name)) or await self._look_up(namespace=namespace, name=name)

    def is_leaving(self, route: Route) -> bool:
        return self._leaving.left(route.pod_uid) > 0

    def leaves(self, route: Route) -> None:
        """Its runtime takes nothing more, for certain."""
        self._leaving.mark(route.pod_uid, certain=True)

    def did_not_take_it(self, route: Route, error: PodLeaving, patience: Patience) -> None:
        """Nothing more goes to this pod: its sandbox is woken, and the next pod waited for."""
        patience.cause = error.message
        self._leaving.mark(route.pod_uid, certain=error.certain)

    async def _wait(
        self,
        key: Key,
        route: Route,
        patience: Patience,
        *,
        limit: float,
        listed: bool,
        step_of: Callable[[Route], Step],
    ) -> Route:
        with self._table.changes(key) as changed:
            while True:
                changed.clear()
                known = self._table.get(key)
                if known is None and listed:
                    raise unknown_sandbox(namespace=key[0], name=key[1])
                # As long as nothing came over the watch, what the look-up said still holds.
                route, listed = known or route, known is not None
                step = step_of(route)
                if step is Step.GO:
                    return route
                if step is Step.REFUSE:
                    self._refuse(key, route)
                left = patience.left(self._briefly if step is Step.WAIT_BRIEFLY else limit)
                if left <= 0:
                    self._give_up(key, route, step, patience)
                pauses = [left]
                if step is Step.WAKE:
                    pauses.append(self._waker.ask(key, route))
                if (mark := self._leaving.left(route.pod_uid)) > 0:
                    pauses.append(mark)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(pauses)):
                        await changed.wait()

    def _waited(self, exchange: Exchange, step: Step, *, seconds: float) -> None:
        exchange.waited += seconds
        if step is not Step.WAIT_BRIEFLY:
            self._metrics.observe("wake_wait_seconds", seconds)

    def _step(self, route: Route, *, in_setup: bool) -> Step:
        return step_for(route, leaving=self.is_leaving(route), in_setup=in_setup)

    async def _look_up(self, *, namespace: str, name: str) -> Route:
        try:
            # Not written into the table: only the watch may, in its order, or a deletion could be undone.
            return Route.from_object(await self._kube.request("GET", paths.sandboxes(namespace, name)))
        except api.NotFound as error:
            raise unknown_sandbox(namespace=namespace, name=name) from error
        except api.ApiError as error:
            raise Unchecked(
                f'sandbox "{name}" is not known here yet, and the API server did not answer when asked',
                name=name,
            ) from error

    def _refuse(self, key: Key, route: Route) -> NoReturn:
        namespace, name = key
        if route.paused and not route.deleting:
            self._metrics.count("wait_refusals_total", cause="paused")
            raise Conflict(
                f'sandbox "{name}" is paused, and requests do not wake it: resume it with `kubectl patch '
                f'sandbox {name} -n {namespace} --type merge -p \'{{"spec":{{"paused":false}}}}\'`',
                name=name,
            )
        self._metrics.count("wait_refusals_total", cause="deleting" if route.deleting else "not_ready")
        failed = route.phase == Phase.FAILED and not route.deleting
        raise (NotStarting if failed else NotReady)(why_not(name, route), name=name)

    def _give_up(self, key: Key, route: Route, step: Step, patience: Patience) -> NoReturn:
        self._metrics.count("wait_refusals_total", cause="timeout")
        namespace, name = key
        if step is Step.WAIT_BRIEFLY:
            raise NotReady(why_not(name, route), name=name)
        why = (route.ready and patience.cause) or why_not(name, route)
        raise NotReady(
            f"{why}; it was asked to wake and did not in time: try again, or see `kubectl describe sandbox "
            f"{name} -n {namespace}`",
            name=name,
        )


def why_not(name: str, route: Route) -> str:
    state = "is being deleted" if route.deleting else f"is not ready (phase {route.phase or 'unknown'})"
    reason = ": ".join(text for text in (route.reason, route.message) if text)
    return f'sandbox "{name}" {state}{" - " if reason else ""}{reason}'
