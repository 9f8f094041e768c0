"""What is kept, and for how long: connections to runtimes and RBAC's decisions."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sandpod_crds.kube import Kube
from sandpod_gateway.authorization import Authorizer, Question
from sandpod_gateway.errors import Denied, NotReady, TooMany
from sandpod_gateway.identity import Identity
from sandpod_gateway.permissions import Permission
from sandpod_gateway.pool import IDLE_SECONDS, MAX_IDLE_PER_ADDRESS, Pool

from tests.support.gateway_api_server import ApiServer
from tests.support.gateway_harness import until
from tests.support.gateway_raw_runtime import RawRuntime

ANY_ADDRESS = ("127.0.0.1", 1)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def runtime() -> AsyncIterator[RawRuntime]:
    runtime = RawRuntime()
    listening = await asyncio.start_server(runtime.accept, "127.0.0.1", 0)
    runtime.port = listening.sockets[0].getsockname()[1]
    yield runtime
    listening.close()
    await runtime.close()


@pytest.fixture
async def clock_and_pool() -> AsyncIterator[tuple[Clock, Pool]]:
    clock = Clock()
    pool = Pool(per_address=40, total=50, connect_timeout=1, clock=clock)
    yield clock, pool
    pool.close()


async def test_a_connection_is_kept_for_seconds_only(
    runtime: RawRuntime, clock_and_pool: tuple[Clock, Pool]
) -> None:
    clock, pool = clock_and_pool
    address = ("127.0.0.1", runtime.port)
    async with pool.lease(address) as lease:
        first = lease.connection
        lease.reusable = True
    async with pool.lease(address) as lease:
        assert lease.connection is first
        lease.reusable = True

    clock.now += IDLE_SECONDS - 1
    pool.sweep()
    assert pool.idle == 1
    clock.now += 2
    async with pool.lease(address) as lease:
        assert lease.connection is not first
        lease.reusable = True
    clock.now += IDLE_SECONDS
    pool.sweep()

    assert (pool.idle, pool.busy) == (0, 0)
    await asyncio.wait_for(runtime.all_closed(), 5)


async def test_no_more_connections_are_kept_than_a_sandbox_is_worth(
    runtime: RawRuntime, clock_and_pool: tuple[Clock, Pool]
) -> None:
    _, pool = clock_and_pool
    address = ("127.0.0.1", runtime.port)
    let_go = asyncio.Event()

    async def use() -> None:
        async with pool.lease(address) as lease:
            lease.reusable = True
            await let_go.wait()

    users = [asyncio.create_task(use()) for _ in range(MAX_IDLE_PER_ADDRESS + 5)]
    await until(lambda: runtime.connections == len(users))
    assert pool.busy == len(users)
    let_go.set()
    await asyncio.gather(*users)

    assert (pool.idle, pool.busy) == (MAX_IDLE_PER_ADDRESS, 0)


async def test_a_connection_that_the_runtime_closes_is_not_used_again(
    runtime: RawRuntime, clock_and_pool: tuple[Clock, Pool]
) -> None:
    _, pool = clock_and_pool
    address = ("127.0.0.1", runtime.port)
    async with pool.lease(address) as lease:
        first = lease.connection
        lease.reusable = True

    await runtime.close()
    await until(lambda: not first.is_connected())

    async with pool.lease(address) as lease:
        assert lease.connection is not first


async def test_the_number_of_requests_under_way_is_bounded_in_all(runtime: RawRuntime) -> None:
    pool = Pool(per_address=2, total=3, connect_timeout=1)
    here, there = ("127.0.0.1", runtime.port), ("127.0.0.2", runtime.port)
    async with pool.lease(here), pool.lease(here):
        with pytest.raises(TooMany):
            async with pool.lease(here):
                raise AssertionError
        # 127.0.0.2 is nobody, but it would have been tried.
        with pytest.raises(NotReady, match="does not accept"):
            async with pool.lease(there):
                raise AssertionError
        bounded = Pool(per_address=2, total=0, connect_timeout=1)
        with pytest.raises(NotReady, match="takes no more"):
            async with bounded.lease(here):
                raise AssertionError
    assert pool.busy == 0


def question(user: str = "jane", *, verb: str = "create") -> Question:
    return Question(
        identity=Identity(user=user),
        permission=Permission(verb, "exec"),
        namespace="default",
        name="hello",
    )


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    server = ApiServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def kube(api: ApiServer) -> AsyncIterator[Kube]:
    connection = api.kube()
    yield connection
    await connection.close()


async def test_a_burst_asks_once(api: ApiServer, kube: Kube) -> None:
    authorizer = Authorizer(kube=kube, cache_seconds=5)

    await asyncio.gather(*(authorizer.check(question()) for _ in range(20)))

    assert len(api.reviews) == 1


async def test_whoever_asked_first_may_hang_up_without_the_others_noticing(
    api: ApiServer, kube: Kube
) -> None:
    authorizer = Authorizer(kube=kube, cache_seconds=5)
    first = asyncio.create_task(authorizer.check(question()))
    await asyncio.sleep(0)
    second = asyncio.create_task(authorizer.check(question()))
    await asyncio.sleep(0)

    first.cancel()

    await second
    assert len(api.reviews) == 1


async def test_refusals_are_remembered_as_long_as_permissions(api: ApiServer, kube: Kube) -> None:
    clock = Clock()
    api.allow = lambda spec: False
    authorizer = Authorizer(kube=kube, cache_seconds=5, clock=clock)

    for _ in range(2):
        with pytest.raises(Denied):
            await authorizer.check(question())
    # About all sandboxes, and about this one.
    assert len(api.reviews) == 2

    api.allow = lambda spec: True
    clock.now += 5
    await authorizer.check(question())
    assert len(api.reviews) == 3


async def test_failures_are_not_remembered(api: ApiServer, kube: Kube) -> None:
    authorizer = Authorizer(kube=kube, cache_seconds=5)
    api.down = True
    with pytest.raises(NotReady):
        await authorizer.check(question())

    api.down = False

    await authorizer.check(question())


async def test_a_connection_that_the_api_server_has_just_closed_is_no_refusal(
    api: ApiServer, kube: Kube
) -> None:
    authorizer = Authorizer(kube=kube, cache_seconds=5)
    await authorizer.check(question())
    api.hang_ups = 1

    await authorizer.check(question("joe"))


async def test_the_least_used_decisions_are_forgotten_first(api: ApiServer, kube: Kube) -> None:
    authorizer = Authorizer(kube=kube, cache_seconds=5, size=2)
    for user in ("a", "b", "a", "c", "a"):
        await authorizer.check(question(user))
    assert [review["user"] for review in api.reviews] == ["a", "b", "c"]

    await authorizer.check(question("b"))

    assert len(api.reviews) == 4
