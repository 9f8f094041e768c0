"""A runtime proves that it was given the credential to somebody who has not sent it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from sandpod_crds.keys import proof

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime

Json = dict[str, Any]

NONCE = "0123456789abcdef-_AZ"
ASK = f"GET /api/prove?nonce={NONCE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
PING = f"GET /api/ping HTTP/1.1\r\nHost: localhost\r\nX-Sandpod-Credential: {CREDENTIAL}\r\n\r\n".encode()


@pytest.fixture
def unbound(start: Callable[..., Runtime]) -> Runtime:
    return start(insecure=False)


@pytest_asyncio.fixture
async def bound(unbound: Runtime) -> AsyncIterator[Runtime]:
    headers = {"X-Sandpod-Bind-Token": TOKEN}
    async with aiohttp.ClientSession(unbound.url) as http:
        async with http.post("/api/bind", json=BIND, headers=headers) as response:
            assert response.status == 200
        yield unbound


async def ask(runtime: Runtime, nonce: str | None) -> tuple[int, Json]:
    query = {} if nonce is None else {"nonce": nonce}
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.get("/api/prove", params=query) as response,
    ):
        return response.status, await response.json()


async def test_a_bound_runtime_proves_that_it_has_the_credential(bound: Runtime) -> None:
    status, body = await ask(bound, NONCE)
    assert status == 200
    assert body["proof"] == proof(credential=CREDENTIAL, nonce=NONCE)
    assert CREDENTIAL not in str(body)


async def test_an_unbound_runtime_has_nothing_to_prove_it_with(unbound: Runtime) -> None:
    status, body = await ask(unbound, NONCE)
    assert (status, body["code"]) == (409, "NOT_BOUND")


@pytest.mark.parametrize("nonce", [None, "", "a" * 15, "a" * 65, "a" * 15 + " ", "ä" * 20, "a" * 20 + ":"])
async def test_a_nonce_is_bounded(bound: Runtime, nonce: str | None) -> None:
    status, body = await ask(bound, nonce)
    assert (status, body["code"]) == (400, "VALIDATION_FAILED")


async def test_to_prove_it_is_no_activity(bound: Runtime) -> None:
    headers = {"X-Sandpod-Credential": CREDENTIAL}

    async def last_active(http: aiohttp.ClientSession) -> str:
        async with http.get("/api/lifecycle", headers=headers) as response:
            return (await response.json())["activity"]["lastActiveAt"]

    async with aiohttp.ClientSession(bound.url) as http:
        before = await last_active(http)
        assert (await ask(bound, NONCE))[0] == 200
        assert await last_active(http) == before


async def test_a_runtime_that_is_going_to_sleep_still_proves_it(bound: Runtime) -> None:
    headers = {"X-Sandpod-Credential": CREDENTIAL}
    async with aiohttp.ClientSession(bound.url, headers=headers) as http:
        # What ignores SIGTERM keeps it there for a while.
        stubborn = {"command": "trap '' TERM; while :; do sleep 1; done"}
        async with http.post("/api/process/start", json=stubborn) as response:
            assert response.status == 200
        async with http.post("/api/lifecycle/sleep", json={}) as response:
            assert (await response.json())["phase"] == "draining"
        async with http.get("/api/ping") as response:
            assert response.status == 503
        assert (await ask(bound, NONCE))[0] == 200


async def test_whoever_was_given_a_proof_shows_the_credential_on_the_same_connection(bound: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bound.port)
    writer.write(ASK)
    head = await reader.readuntil(b"}")
    assert b"\r\nConnection: close\r\n" not in head
    writer.write(PING)
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_stranger_keeps_no_connection_by_asking_for_proofs(bound: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bound.port)
    writer.write(ASK)
    await reader.readuntil(b"}")
    writer.write(ASK)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"\r\nConnection: close\r\n" in answer
    writer.close()


async def test_a_stranger_who_says_no_more_after_a_proof_is_hung_up_on(bound: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bound.port)
    writer.write(ASK)
    # Much sooner than a connection that is kept for a client.
    with pytest.raises(asyncio.IncompleteReadError):
        await asyncio.wait_for(reader.readuntil(b"never"), 30)
    writer.close()
