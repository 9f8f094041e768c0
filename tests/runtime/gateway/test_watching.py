"""The route table against the API server: what it knows, and what it forgets when the watch fails it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sandpod_crds.kube import Kube
from sandpod_gateway.reflector import Reflector
from sandpod_gateway.routes import RouteTable

from tests.support.gateway_api_server import ApiServer, sandbox
from tests.support.gateway_harness import until

HELLO = ("default", "hello")


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


@pytest.fixture
async def watching(kube: Kube) -> AsyncIterator[tuple[RouteTable, Reflector]]:
    table = RouteTable()
    reflector = Reflector(kube=kube, table=table)
    task = asyncio.create_task(reflector.run())
    yield table, reflector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


Watching = tuple[RouteTable, Reflector]


async def test_the_table_follows_the_cluster(api: ApiServer, watching: Watching) -> None:
    table, reflector = watching
    await reflector.synced.wait()

    await api.put(sandbox("hello", phase="Starting", ready=False, pod_ip=""))
    await until(lambda: table.get(HELLO) is not None)
    await api.put(sandbox("hello", pod_ip="10.9.9.9"))
    await until(lambda: (route := table.get(HELLO)) is not None and route.pod_ip == "10.9.9.9")
    await api.delete("hello")
    await until(lambda: table.get(HELLO) is None)

    assert api.lists == 1


async def test_what_was_there_before_is_listed_page_by_page(api: ApiServer, watching: Watching) -> None:
    api.page = 2
    for number in range(5):
        await api.put(sandbox(f"box-{number}"))
    table, reflector = watching

    await reflector.synced.wait()

    assert len(table) == 5
    assert api.lists == 3


async def test_a_sandbox_whose_deletion_the_watch_missed_is_gone_after_the_next_list(
    api: ApiServer, watching: Watching
) -> None:
    table, reflector = watching
    await api.put(sandbox("hello"))
    await until(lambda: table.get(HELLO) is not None)

    await api.delete("hello", told=False)
    await api.put(sandbox("other"))
    await until(lambda: len(table) == 2)
    await api.compact()

    await until(lambda: table.get(HELLO) is None)
    assert api.lists == 2
    assert len(table) == 1
    # And from there on the watch goes on.
    await api.put(sandbox("hello"))
    await until(lambda: table.get(HELLO) is not None)
    assert reflector.synced.is_set()


async def test_a_watch_that_ends_goes_on_from_where_it_was(api: ApiServer, watching: Watching) -> None:
    table, reflector = watching
    await reflector.synced.wait()
    await api.bookmark()
    api.watch_lags = True
    await api.hang_up()
    await api.put(sandbox("hello"))
    await api.catch_up()

    await until(lambda: table.get(HELLO) is not None)

    assert api.lists == 1


async def test_a_watch_that_is_cut_goes_on_from_the_last_event(api: ApiServer, watching: Watching) -> None:
    table, reflector = watching
    await reflector.synced.wait()
    await api.put(sandbox("hello"))
    await until(lambda: table.get(HELLO) is not None)
    await api.delete("hello")
    await until(lambda: table.get(HELLO) is None)

    await api.cut()

    await until(lambda: len(api.watched_from) == 2)
    # Neither of the two events is told again.
    assert api.watched_from[1] == api.watched_from[0] + 2
    assert api.lists == 1


async def test_watches_that_end_at_once_are_asked_for_ever_more_slowly(
    api: ApiServer, watching: Watching
) -> None:
    api.watch_ends = True
    started = asyncio.get_running_loop().time()

    await until(lambda: len(api.watched_from) == 4)

    # 0.1, 0.2 and 0.4 s at the least.
    assert asyncio.get_running_loop().time() - started > 0.65
    api.watch_ends = False
    await api.put(sandbox("hello"))
    await until(lambda: watching[0].get(HELLO) is not None)


async def test_an_api_server_that_is_away_is_asked_again_and_the_table_kept(
    api: ApiServer, watching: Watching
) -> None:
    table, _ = watching
    await api.put(sandbox("hello"))
    await until(lambda: table.get(HELLO) is not None)
    api.down = True
    await api.hang_up()
    await until(lambda: api.refused > 0)
    assert table.get(HELLO) is not None

    api.down = False
    await api.put(sandbox("other"))

    await until(lambda: len(table) == 2, seconds=10)


async def test_the_age_says_when_the_api_server_was_last_heard(api: ApiServer, kube: Kube) -> None:
    now = 100.0
    reflector = Reflector(kube=kube, table=RouteTable(), clock=lambda: now)
    assert reflector.age() is None
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()

    now = 130.0
    assert reflector.age() == 30
    await api.bookmark()
    await until(lambda: reflector.age() == 0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
