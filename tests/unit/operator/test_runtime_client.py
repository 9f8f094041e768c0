"""The bind, against servers on loopback that answer as a runtime does, or as it should not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from sandpod_crds.keys import bind_token, credential
from sandpod_operator.metrics import Metrics
from sandpod_operator.observations import Answer, Errand, Key, Outcome
from sandpod_operator.plan import Ask
from sandpod_operator.runtime_client import LONGEST_ANSWER, RuntimeClient, pod_address

from tests.support.operator_objects import KEY, NOW, POD_UID, UID

SECRET = b"k" * 32
ASK = Ask(
    errand=Errand.BIND,
    subject="10m",
    sleep_after=600,
    pod_uid=POD_UID,
    pod_name=KEY.name,
    namespace=KEY.namespace,
    ip="10.1.0.7",
    sandbox_name=KEY.name,
    sandbox_uid=UID,
    spec_hash="abc",
    env={"A": "1"},
)


class Runtime:
    """Answers the bind with what a test puts here."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.binds: list[Callable[[], web.Response]] = []
        self.lifecycle: Callable[[], web.Response] = lambda: web.json_response({}, status=401)
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_post("/api/bind", self._bind)
        app.router.add_get("/api/lifecycle", self._lifecycle)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _bind(self, request: web.Request) -> web.Response:
        self.requests.append(("bind", dict(request.headers), await request.json()))
        answer = self.binds[0] if len(self.binds) == 1 else self.binds.pop(0)
        return answer()

    async def _lifecycle(self, request: web.Request) -> web.Response:
        self.requests.append(("lifecycle", dict(request.headers), None))
        return self.lifecycle()


class Bench:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.metrics = Metrics()
        self.answers: asyncio.Queue[tuple[Key, Answer]] = asyncio.Queue()
        self.attempts: asyncio.Queue[str] = asyncio.Queue()
        self.client = RuntimeClient(
            key=SECRET,
            answered=lambda key, answer: self.answers.put_nowait((key, answer)),
            metrics=self.metrics,
            now=lambda: NOW,
            where=self._where,
        )

    def _where(self, ip: str) -> str:
        self.attempts.put_nowait(ip)
        return f"127.0.0.1:{self.runtime.port}"

    async def answer(self) -> Answer:
        key, answer = await asyncio.wait_for(self.answers.get(), timeout=10)
        assert key == KEY
        return answer


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    runtime = Runtime()
    await runtime.start()
    bench = Bench(runtime)
    yield bench
    await bench.client.close()
    await runtime.stop()


def says(status: int, body: Any) -> Callable[[], web.Response]:
    return lambda: web.json_response(body, status=status)


async def test_a_runtime_that_takes_the_bind_is_bound(bench: Bench) -> None:
    bench.runtime.binds = [says(200, {"success": True, "runtimeVersion": "0.1.0"})]
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    assert (answer.outcome, answer.version, answer.spec_hash) == (Outcome.DONE, "0.1.0", "abc")
    assert len(bench.client) == 0
    _, headers, body = bench.runtime.requests[0]
    token = bind_token(key=SECRET, namespace=KEY.namespace, pod_name=KEY.name)
    assert headers["X-Sandpod-Bind-Token"] == token
    assert body == {
        "sandbox": {"namespace": "team", "name": "box", "uid": UID},
        "pod": {"name": "box", "uid": POD_UID},
        "credential": credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID),
        "env": {"A": "1"},
        "lifecycle": {"sleepAfterSeconds": 600, "keepAlive": False},
        "processes": [],
        "setup": [],
    }


async def test_it_is_asked_again_until_it_listens(bench: Bench) -> None:
    port = bench.runtime.port
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    await bench.attempts.get()
    await bench.attempts.get()
    late = Runtime()
    late.binds = [says(503, {"code": "CONTAINER_UNAVAILABLE"}), says(200, {"runtimeVersion": "1"})]
    await late.start(port)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert len(late.requests) == 2
    await late.stop()


async def test_a_runtime_that_was_bound_before_a_crash_is_found_again(bench: Bench) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.runtime.lifecycle = says(200, {"runtimeVersion": "0.1.0"})
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    # What it was bound with, nobody knows any more.
    assert (answer.outcome, answer.version, answer.spec_hash) == (Outcome.DONE, "0.1.0", "")
    headers = bench.runtime.requests[1][1]
    assert headers["X-Sandpod-Credential"] == credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID)


async def test_a_runtime_that_somebody_else_bound_is_refused(bench: Bench) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    assert (answer.outcome, answer.message) == (Outcome.REFUSED, "somebody else has bound it.")


async def test_a_runtime_that_does_not_know_our_token_is_refused(bench: Bench) -> None:
    bench.runtime.binds = [says(401, {"code": "UNAUTHENTICATED"})]
    bench.client.want(KEY, ASK)

    assert "another key of the installation" in (await bench.answer()).message


async def test_a_runtime_that_does_not_like_the_bind_says_why(bench: Bench) -> None:
    bench.runtime.binds = [says(400, {"code": "VALIDATION_FAILED", "message": "env: too long"})]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).message == "it answered 400 VALIDATION_FAILED: env: too long"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b'"x"', b"{" + b" " * (LONGEST_ANSWER + 10), b"[" * 60_000], ids=len
)
async def test_an_answer_that_is_no_json_object_is_survived(bench: Bench, body: bytes) -> None:
    bench.runtime.binds = [lambda: web.Response(body=body, status=200)]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).outcome is Outcome.DONE


async def test_a_redirect_is_not_followed(bench: Bench) -> None:
    def elsewhere() -> web.Response:
        raise web.HTTPFound("http://169.254.169.254/")

    bench.runtime.binds = [elsewhere, says(200, {})]
    bench.client.want(KEY, ASK)
    await bench.answer()

    assert [what for what, _, _ in bench.runtime.requests] == ["bind", "bind"]


async def test_an_asking_that_ends_takes_only_its_own_entry_with_it(bench: Bench) -> None:
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    await bench.attempts.get()
    bench.client.want(KEY, replace(ASK, ip="10.1.0.8"))
    while await bench.attempts.get() != "10.1.0.8":
        pass

    assert len(bench.client) == 1


async def test_one_asking_at_a_time_and_none_that_nobody_wants(bench: Bench) -> None:
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    bench.client.want(KEY, ASK)
    assert len(bench.client) == 1
    bench.client.want(KEY, None)
    assert len(bench.client) == 0
    await asyncio.sleep(0)

    assert not [
        task for task in asyncio.all_tasks() if task.get_name() == f"ask {KEY}" and not task.cancelling()
    ]


@pytest.mark.parametrize(
    ("ip", "address"),
    [
        ("10.1.0.7", "10.1.0.7:3000"),
        ("fd00::7", "[fd00::7]:3000"),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("169.254.169.254", None),
        ("fe80::1", None),
        ("0.0.0.0", None),
        ("224.0.0.1", None),
        ("evil.example", None),
        ("10.1.0.7/x", None),
        ("", None),
    ],
)
def test_only_addresses_that_a_pod_can_have_are_dialled(ip: str, address: str | None) -> None:
    assert pod_address(ip) == address


async def test_a_pod_with_another_address_is_refused_without_a_request(bench: Bench) -> None:
    client = RuntimeClient(
        key=SECRET,
        answered=lambda key, answer: bench.answers.put_nowait((key, answer)),
        metrics=bench.metrics,
        now=lambda: NOW,
    )
    client.want(KEY, replace(ASK, ip="127.0.0.1"))
    answer = await bench.answer()
    await client.close()

    assert answer.outcome is Outcome.REFUSED
    assert bench.runtime.requests == []
