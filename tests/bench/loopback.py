"""The runtime alone, on loopback, without a cluster: commands, sessions, and a crowd of processes.

The yardstick runs in this process, in turn with it: a bare asyncio subprocess.
"""

import asyncio
import http.client
import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

from tests.bench.stats import QUIETLY, Row, Section, ms, p50, p99, pair
from tests.support.runtime import Runtime

CROWD = 200


class Connection:
    """One connection to the runtime, used again for each request, as clients do."""

    def __init__(self, runtime: Runtime) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", runtime.port)

    def call(self, method: str, path: str, body: object = None, *, status: int = 200) -> dict[str, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body))
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != status:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return json.loads(text)


def measure(*, rounds: int) -> list[Section]:
    runtime = Runtime(arguments=QUIETLY)
    try:
        idle = Row(
            what="memory of a runtime that was just started", figure=f"{runtime.memory()} MiB", goal="≤ 45 MB"
        )
        commands = _commands(runtime, rounds=rounds)
        return [
            Section(title=commands.title, rows=[*commands.rows, idle]),
            _crowd(runtime, rounds=rounds),
        ]
    finally:
        runtime.dispose()


def _commands(runtime: Runtime, *, rounds: int) -> Section:
    connection = Connection(runtime)
    connection.call("POST", "/api/session/create", {"id": "bench"})
    took: dict[str, list[float]] = {}

    def timed(what: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        took.setdefault(what, []).append(time.perf_counter() - began)

    with asyncio.Runner() as runner:
        for _ in range(rounds):
            timed("bare", lambda: runner.run(_bare("true")))
            timed("bash", lambda: runner.run(_bare("bash", "-c", "true")))
            timed("exec", lambda: connection.call("POST", "/api/execute", {"command": "true"}))
    in_session = {"command": "true", "sessionId": "bench"}
    # Not after a process was started, which leaves every cache cold: a session exists for calls in a row.
    for _ in range(rounds):
        timed("session", lambda: connection.call("POST", "/api/execute", in_session))
        # All that HTTP and JSON cost such a call, and nothing else.
        timed("none", lambda: connection.call("POST", "/api/execute", {"command": " "}, status=400))
    connection.call("POST", "/api/session/delete", {"sessionId": "bench"})
    middle = {what: p50(values) for what, values in took.items()}
    return Section(
        title=f"Commands at the runtime, on loopback ({rounds} each, in turn)",
        rows=[
            Row(
                what='bare `asyncio.create_subprocess_exec("true")`',
                figure=pair(took["bare"]),
                how="p50 / p90; both outputs piped and read",
            ),
            Row(
                what="the same with `bash -c true`",
                figure=pair(took["bash"]),
                how="what an exec has to start",
            ),
            Row(what="exec of `true` over HTTP", figure=pair(took["exec"]), how="p50 / p90; one connection"),
            Row(
                what="ratio of exec to the bare subprocess (p50)",
                figure=f"{middle['exec'] / middle['bare']:.2f}",
                goal="≤ 1.5",
            ),
            Row(
                what="an exec that is refused", figure=pair(took["none"]), how="what HTTP and JSON cost alone"
            ),
            Row(what="`true` in a session, over HTTP", figure=pair(took["session"]), how="p50 / p90"),
            Row(
                what="of it, the session itself",
                figure=ms(middle["session"] - middle["none"]),
                goal="< 1 ms",
                how="less an exec that is refused, p50",
            ),
        ],
    )


async def _bare(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await process.communicate()


def _crowd(runtime: Runtime, *, rounds: int) -> Section:
    connection = Connection(runtime)

    def pings() -> list[float]:
        took: list[float] = []
        for _ in range(rounds * 5):
            began = time.perf_counter()
            connection.call("GET", "/api/ping")
            took.append(time.perf_counter() - began)
            time.sleep(0.005)
        return took

    def beside(count: int, command: str) -> list[float]:
        for _ in range(count):
            connection.call("POST", "/api/process/start", {"command": command})
        took = pings()
        connection.call("DELETE", "/api/process/kill-all")
        return took

    def row(what: str, took: list[float], *, goal: str = "") -> Row:
        return Row(what=what, figure=f"{ms(p50(took))} / {ms(p99(took))}", goal=goal, how="p50 / p99")

    # Waits without starting a program for it: that would measure forks.
    busy = "exec 3<> <(:); while :; do echo a line in the log of a server; read -rt 0.1 -u 3; done"
    flood = "while :; do echo a line in the log of a server, as they are; done"
    return Section(
        title=f"`GET /api/ping` while others work ({rounds * 5} each, {os.cpu_count()} cores for all)",
        rows=[
            row("alone", pings()),
            row(f"{CROWD} processes write ten lines a second each", beside(CROWD, busy), goal="p99 < 20 ms"),
            row(f"{CROWD} processes write without a pause", beside(CROWD, flood)),
            row("4 processes write without a pause", beside(4, flood)),
        ],
    )
