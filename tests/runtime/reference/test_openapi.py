"""/openapi.json as a running runtime serves it."""

import asyncio

import aiohttp
from sandpod_runtime.openapi.generate import routes_of_a_runtime


async def test_the_description_is_of_this_runtime(http: aiohttp.ClientSession) -> None:
    routes = await routes_of_a_runtime()
    async with http.get("/openapi.json") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        found = await response.json()
    assert found["openapi"].startswith("3.1")
    assert {(method.upper(), path) for path, methods in found["paths"].items() for method in methods} == set(
        routes
    )


async def test_many_may_ask_at_once(http: aiohttp.ClientSession) -> None:
    async def ask() -> bytes:
        async with http.get("/openapi.json") as response:
            return await response.read()

    assert len(set(await asyncio.gather(*(ask() for _ in range(20))))) == 1
