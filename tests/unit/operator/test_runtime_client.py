"""What runtimes are told and asked, against servers on loopback that answer as a runtime does, or as none
should.
"""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from sandpod_crds.keys import bind_token, credential
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import uid_of
from sandpod_operator.observations import Answer, Errand, Key, Outcome, SetupResult
from sandpod_operator.plan import Ask
from sandpod_operator.runtime_client import LONGEST_ANSWER, MOST_AT_ONCE, RuntimeClient
from sandpod_operator.whereabouts import pod_address, whereabouts

from tests.support.operator_api import Api
from tests.support.operator_objects import KEY, NOW, POD_UID, UID, pod, up
from tests.support.operator_world import POD_PATH

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
        self.commands: list[Callable[[], web.Response]] = []
        self.lifecycle: Callable[[], web.Response] = lambda: web.json_response({}, status=401)
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_post("/api/bind", self._bind)
        app.router.add_get("/api/lifecycle", self._lifecycle)
        app.router.add_post("/api/lifecycle", self._command)
        app.router.add_post("/api/lifecycle/{what}", self._command)
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

    async def _command(self, request: web.Request) -> web.Response:
        what = request.match_info.get("what", "")
        self.requests.append((what, dict(request.headers), await request.json()))
        return self.commands.pop(0)()

    async def _lifecycle(self, request: web.Request) -> web.Response:
        self.requests.append(("lifecycle", dict(request.headers), None))
        return self.lifecycle()


class Bench:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.metrics = Metrics()
        self.answers: asyncio.Queue[tuple[Key, Answer]] = asyncio.Queue()
        # What the API server says in turn of whether the pod is there
        self.pods: list[bool] = []
        self.attempts: asyncio.Queue[str] = asyncio.Queue()
        self.client = RuntimeClient(
            key=SECRET,
            answered=lambda key, answer: self.answers.put_nowait((key, answer)),
            metrics=self.metrics,
            now=lambda: NOW,
            is_there=self.is_there,
            where=self._where,
        )

    async def is_there(self, ask: Ask) -> bool:
        return self.pods.pop(0) if self.pods else True

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
        "expectSeconds": 0,
        "processes": [],
        "setup": [],
    }


async def test_one_that_somebody_has_woken_is_told_that_somebody_comes(bench: Bench) -> None:
    bench.runtime.binds = [says(200, {"success": True, "runtimeVersion": "0.1.0"})]
    bench.client.want(KEY, replace(ASK, wake="request 1"))
    assert (await bench.answer()).wake == "request 1"
    assert bench.runtime.requests[0][2]["expectSeconds"] == 10


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


async def test_an_address_that_does_not_answer_gets_no_environment_again_before_the_pod_was_seen_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandpod_operator.runtime_client.SURE_FOR", 0.0)
    monkeypatch.setattr("sandpod_operator.runtime_client.LONGEST_PAUSE", 0.0)
    said_at: list[int] = []

    def unbound() -> web.Response:
        said_at.append(len(bench.pods))
        return web.json_response({}, status=503)

    bench.runtime.binds = [unbound, unbound, says(200, {"runtimeVersion": "1"})]
    bench.pods = [False, False, True, True]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert said_at == [4, 1]


async def test_a_pod_is_there_when_the_api_server_has_it_with_this_address() -> None:
    api = Api(now=lambda: NOW)
    is_there = whereabouts(api)
    ask = replace(ASK, pod_uid=uid_of(api.put(POD_PATH, pod())))
    api.change(POD_PATH, {"status": up(ip=ASK.ip)})

    assert await is_there(ask)
    assert not await is_there(replace(ask, pod_uid="that of an earlier one"))
    assert not await is_there(replace(ask, ip="10.1.0.8"))
    api.vanish(POD_PATH)
    assert not await is_there(ask)


async def test_a_runtime_that_was_bound_before_a_crash_is_found_again(bench: Bench) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.runtime.lifecycle = says(200, {"runtimeVersion": "0.1.0"})
    bench.client.want(KEY, replace(ASK, wake="request 1"))
    answer = await bench.answer()

    # What it was bound with, nobody knows any more.
    assert (answer.outcome, answer.version, answer.spec_hash) == (Outcome.DONE, "0.1.0", "")
    assert answer.wake == ""
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
        is_there=bench.is_there,
    )
    client.want(KEY, replace(ASK, ip="127.0.0.1"))
    answer = await bench.answer()
    await client.close()

    assert answer.outcome is Outcome.REFUSED
    assert bench.runtime.requests == []


CREDENTIAL = credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID)
SLEEP = replace(ASK, errand=Errand.SLEEP, subject="paused")
STAY = replace(ASK, errand=Errand.STAY, subject="request 1")
ADJUST = replace(ASK, errand=Errand.ADJUST, subject="5m", sleep_after=300)
CHECK = replace(ASK, errand=Errand.CHECK, subject="2026-11-18T12:00:00Z")
SETUP = replace(ASK, errand=Errand.SETUP, subject="")


@pytest.mark.parametrize(
    ("ask", "path", "body"),
    [
        (SLEEP, "sleep", {"reason": "paused"}),
        (STAY, "lease", {"seconds": 10.0, "holder": "wake"}),
        (ADJUST, "", {"sleepAfterSeconds": 300, "keepAlive": False}),
        (replace(ADJUST, sleep_after=None), "", {"sleepAfterSeconds": None, "keepAlive": True}),
    ],
    ids=["sleep", "stay", "adjust", "keep alive"],
)
async def test_a_runtime_is_told_with_its_own_credential(
    bench: Bench, ask: Ask, path: str, body: dict[str, Any]
) -> None:
    bench.runtime.commands = [says(200, {})]
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    what, headers, told = bench.runtime.requests[0]
    assert (what, told) == (path, body)
    assert headers["X-Sandpod-Credential"] == CREDENTIAL
    assert "X-Sandpod-Bind-Token" not in headers
    assert (answer.errand, answer.outcome, answer.subject) == (ask.errand, Outcome.DONE, ask.subject)


@pytest.mark.parametrize("ask", [SLEEP, STAY, ADJUST], ids=lambda ask: ask.errand.value)
@pytest.mark.parametrize("status", [503, 404, 302])
async def test_a_runtime_that_does_not_do_as_told_has_refused(bench: Bench, ask: Ask, status: int) -> None:
    bench.runtime.commands = [says(status, {"code": "DRAINING", "message": "x" * 60_000})]
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    assert (answer.outcome, answer.message) == (Outcome.REFUSED, f"it answered {status}")
    assert len(bench.runtime.requests) == 1


@pytest.mark.parametrize("ask", [SLEEP, STAY, ADJUST], ids=lambda ask: ask.errand.value)
@pytest.mark.parametrize("status", [401, 500, 502])
async def test_a_runtime_in_trouble_for_a_moment_is_told_again(bench: Bench, ask: Ask, status: int) -> None:
    bench.runtime.commands = [says(status, {}), says(200, {})]
    bench.client.want(KEY, ask)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert len(bench.runtime.requests) == 2


async def test_a_runtime_that_ends_while_it_is_told_is_told_again(bench: Bench) -> None:
    port = bench.runtime.port
    await bench.runtime.stop()
    bench.client.want(KEY, SLEEP)
    await bench.attempts.get()
    await bench.attempts.get()
    late = Runtime()
    late.commands = [says(202, {})]
    await late.start(port)

    assert (await bench.answer()).outcome is Outcome.DONE
    await late.stop()


async def test_the_setup_is_asked_about_until_it_has_ended(bench: Bench) -> None:
    answers = iter([{"setup": {"state": "running"}}, {"setup": {"state": "succeeded"}}])
    bench.runtime.lifecycle = lambda: web.json_response(next(answers))
    bench.client.want(KEY, SETUP)
    answer = await bench.answer()

    assert answer.setup == SetupResult(state="Succeeded")
    assert [what for what, _, _ in bench.runtime.requests] == ["lifecycle", "lifecycle"]


async def test_a_setup_that_failed_says_where_and_how(bench: Bench) -> None:
    failed = {"state": "failed", "step": 2, "command": "make", "exitCode": 2, "output": "no rule\n"}
    bench.runtime.lifecycle = says(200, {"setup": failed})
    bench.client.want(KEY, SETUP)
    answer = await bench.answer()

    said = "step 2 (make) ended with code 2: no rule"
    assert answer.setup == SetupResult(state="Failed", message=said)


async def test_a_runtime_that_is_not_ours_any_more_does_not_end_the_question_after_its_setup(
    bench: Bench,
) -> None:
    answers = iter([says(401, {}), says(500, {}), says(200, {"setup": None})])
    bench.runtime.lifecycle = lambda: next(answers)()
    bench.client.want(KEY, SETUP)

    assert (await bench.answer()).setup == SetupResult(state="Succeeded")


@pytest.mark.parametrize(
    ("disk", "message"),
    [
        ({"full": True, "free": 10, "total": 100}, "10 of 100 bytes are free."),
        ({"full": False, "free": 90, "total": 100}, ""),
        ({"full": "true"}, ""),
        (None, ""),
        ([], ""),
    ],
    ids=["full", "room", "no boolean", "none", "no record"],
)
async def test_a_runtime_says_whether_its_disk_is_full(bench: Bench, disk: Any, message: str) -> None:
    bench.runtime.lifecycle = says(200, {"disk": disk})
    bench.client.want(KEY, CHECK)
    answer = await bench.answer()

    assert (answer.outcome, answer.message, answer.subject) == (Outcome.DONE, message, CHECK.subject)


@pytest.mark.parametrize(
    ("disk", "unwritable"),
    [({"writable": False}, True), ({"writable": True}, False), ({}, False), (7, False)],
)
@pytest.mark.parametrize("again", [False, True], ids=["at the bind", "of one that was bound before"])
async def test_a_workspace_that_nobody_can_write_to_is_told(
    bench: Bench, disk: Any, unwritable: bool, again: bool
) -> None:
    body = {"runtimeVersion": "1", "disk": disk}
    bench.runtime.binds = [says(409, {}) if again else says(200, body)]
    bench.runtime.lifecycle = says(200, body)
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).unwritable is unwritable


HOSTILE: list[Any] = [
    [],
    {"setup": 7, "disk": "full"},
    {"setup": {"state": "failed", "step": {}, "command": ["x"], "exitCode": None, "output": {}}},
    {"setup": {"state": "failed", "output": "\ud800\0" * 20_000, "command": "x" * 50_000}},
    {"setup": {"state": "failed", "step": 1e308, "exitCode": float("inf")}},
    {"disk": {"full": True, "free": "\ud800\0" * 1000, "total": []}},
    {"runtimeVersion": ["1"], "isolation": {"mode": 7, "complete": "yes", "reason": "\0" * 9000}},
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("ask", [SETUP, CHECK, ASK], ids=lambda ask: ask.errand.value)
async def test_what_a_hostile_runtime_says_fits_into_a_status(bench: Bench, ask: Ask, body: Any) -> None:
    bench.runtime.binds = [says(409, {})]
    bench.runtime.lifecycle = lambda: web.Response(body=json.dumps(body).encode(), status=200)
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    texts = [answer.message, answer.version, answer.setup.message if answer.setup else ""]
    texts += [answer.walls.reason] if answer.walls else []
    for text in texts:
        text.encode()
        assert "\0" not in text
        assert len(text) <= 4096


async def test_a_namespace_whose_pods_say_nothing_does_not_hold_up_others(bench: Bench) -> None:
    """Its pods accept connections and never answer; another tenant's runtime is asked all the same."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    silent = await asyncio.start_server(hold, host="127.0.0.1", port=0)
    where = {"10.1.0.8": silent.sockets[0].getsockname()[1], "10.1.0.7": bench.runtime.port}
    client = RuntimeClient(
        key=SECRET,
        answered=lambda key, answer: bench.answers.put_nowait((key, answer)),
        metrics=bench.metrics,
        now=lambda: NOW,
        is_there=bench.is_there,
        where=lambda ip: f"127.0.0.1:{where[ip]}",
    )
    for number in range(MOST_AT_ONCE + 1):
        client.want(Key("hostile", f"box-{number}"), replace(ASK, namespace="hostile", ip="10.1.0.8"))
    bench.runtime.binds = [says(200, {"runtimeVersion": "1"})]
    client.want(KEY, ASK)
    answer = await bench.answer()
    await client.close()
    for writer in held:
        writer.close()
    silent.close()

    assert answer.outcome is Outcome.DONE


async def test_what_has_said_nothing_once_is_given_less_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandpod_operator.runtime_client.ANSWER_SECONDS", 0.05)
    # More of it here, so that only by it there can be an answer.
    monkeypatch.setattr("sandpod_operator.runtime_client.SILENT_SECONDS", 60.0)
    connections: list[asyncio.StreamWriter] = []

    async def answer_the_second(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) > 1:
            await asyncio.sleep(0.3)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    silent = await asyncio.start_server(answer_the_second, host="127.0.0.1", port=0)
    client = RuntimeClient(
        key=SECRET,
        answered=lambda key, answer: bench.answers.put_nowait((key, answer)),
        metrics=bench.metrics,
        now=lambda: NOW,
        is_there=bench.is_there,
        where=lambda _: f"127.0.0.1:{silent.sockets[0].getsockname()[1]}",
    )
    client.want(KEY, ASK)
    answer = await bench.answer()
    await client.close()
    for writer in connections:
        writer.close()
    silent.close()

    assert (answer.outcome, len(connections)) == (Outcome.DONE, 2)


async def test_a_namespace_in_which_nobody_is_asked_any_more_takes_no_room(bench: Bench) -> None:
    seen: list[int] = []

    def bound() -> web.Response:
        seen.append(bench.client.namespaces)
        return web.json_response({"runtimeVersion": "1"})

    bench.runtime.binds = [bound]
    for number in range(3):
        bench.client.want(KEY, replace(ASK, namespace=f"team-{number}"))
        await bench.answer()
    gc.collect()

    assert seen[0] == 1
    assert bench.client.namespaces == 0
