"""Requests thrown at sandboxes in the very moment they fall asleep, on a real cluster: through the API
server, or at the program behind a preview URL. For a benchmark of many rounds and a test of few.
"""

import random
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx

from tests.support.cluster import Json, proxy_path
from tests.support.waiting import eventually

SLEEP_AFTER = 1.0
SPEC: Json = {"sleepAfter": "1s"}
PORT = 8000
_PROGRAM = """
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    do_POST = do_GET

http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
# With a program that is there again after every wake
PREVIEW_SPEC: Json = {
    **SPEC,
    "ports": [{"port": PORT}],
    "processes": [{"name": "program", "command": f"exec python3 -c {shlex.quote(_PROGRAM)}", "port": PORT}],
}
# Around the end of sleepAfter: the last moments before the decision, and the first after it. Now and then
# later, while the pod goes away.
JITTER = 0.05
LATER = 1.5
# An answer within this came from a sandbox that was awake.
AWAKE = 0.2
PADDING = 256 * 1024


@dataclass
class Outcome:
    """What became of all that was thrown."""

    rounds: int = 0
    failures: list[str] = field(default_factory=list[str])
    seconds: list[float] = field(default_factory=list[float])
    phases: Counter[str] = field(default_factory=Counter[str])
    wakes: int = 0

    @property
    def waited(self) -> int:
        """Requests that met a sandbox which slept or was about to."""
        return sum(took > AWAKE for took in self.seconds)


class Racer:
    """One sandbox, and the requests to it. A connection for each that is under way at a time."""

    def __init__(self, client: Callable[[], httpx.Client], *, namespace: str, name: str) -> None:
        self._api = client()
        self._clients = [client() for _ in range(3)]
        self._namespace = namespace
        self._name = name
        self._dice = random.Random(name)
        self._thrown = 0
        self._outcome = Outcome()

    def run(self, *, rounds: int) -> Outcome:
        with ThreadPoolExecutor(len(self._clients)) as threads:
            self._first()
            for _ in range(rounds):
                late = self._dice.random() < 0.25
                offset = self._dice.uniform(0, LATER) if late else self._dice.uniform(-JITTER, JITTER)
                time.sleep(SLEEP_AFTER + offset)
                for thrown in [threads.submit(throw) for throw in self._throws()]:
                    thrown.result()
                self._outcome.rounds += 1
        return self._outcome

    def end(self) -> Outcome:
        """Once nobody asks any more it has to sleep."""

        def status() -> Json:
            status = self._get().get("status", {})
            assert status.get("phase") == "Asleep", status
            return status

        try:
            self._outcome.wakes = eventually(status, timeout=30, every=0.5).get("wakes", 0)
        except AssertionError as never:
            self._outcome.failures.append(f"{self._name} does not fall asleep: {never}")
        self._outcome.phases[str(self._get().get("status", {}).get("phase"))] += 1
        for client in (self._api, *self._clients):
            client.close()
        return self._outcome

    def _first(self) -> None:
        self._command(self._clients[0], "first", 0)

    def _throws(self) -> list[Callable[[], None]]:
        first, second, third = self._clients
        numbers = [str(self._thrown + offset) for offset in (1, 2)]
        self._thrown += 2
        return [
            lambda: self._command(first, numbers[0], 0),
            lambda: self._command(second, numbers[1], PADDING),
            lambda: self._ask(third, "GET", "api/process/list", None, ""),
        ]

    def _command(self, client: httpx.Client, number: str, padding: int) -> None:
        body = {"command": f"cat > /dev/null; printf %s {number}", "stdin": "x" * padding}
        self._ask(client, "POST", "api/execute", body, number)

    def _ask(self, client: httpx.Client, method: str, path: str, body: Json | None, output: str) -> None:
        began = time.perf_counter()
        url = proxy_path(namespace=self._namespace, name=self._name, path=path)
        try:
            answer = client.request(method, url, json=body)
        except httpx.HTTPError as error:
            self._outcome.failures.append(f"{self._name} {method}: {error!r}")
            return
        self._outcome.seconds.append(time.perf_counter() - began)
        if answer.status_code != 200 or (output and answer.json().get("stdout") != output):
            self._outcome.failures.append(f"{self._name} {method}: {answer.status_code} {answer.text[:300]}")

    def _get(self) -> Json:
        path = f"/apis/sandpod.dev/v1alpha1/namespaces/{self._namespace}/sandboxes/{self._name}"
        return self._api.get(path).raise_for_status().json()


class PreviewRacer(Racer):
    """At the program behind its preview URL. `preview` makes clients whose paths are the preview's."""

    def __init__(
        self,
        client: Callable[[], httpx.Client],
        *,
        namespace: str,
        name: str,
        preview: Callable[[], httpx.Client],
    ) -> None:
        super().__init__(client, namespace=namespace, name=name)
        for each in self._clients:
            each.close()
        self._clients = [preview() for _ in range(3)]

    def _first(self) -> None:
        self._see(self._clients[0], "/first", b"")

    def _throws(self) -> list[Callable[[], None]]:
        first, second, third = self._clients
        paths = [f"/{self._thrown + offset}" for offset in (1, 2, 3)]
        self._thrown += 3
        return [
            lambda: self._see(first, paths[0], b""),
            lambda: self._see(second, paths[1], b"x" * PADDING),
            lambda: self._see(third, paths[2], b"x"),
        ]

    def _see(self, client: httpx.Client, path: str, body: bytes) -> None:
        began = time.perf_counter()
        method = "POST" if body else "GET"
        try:
            answer = client.request(method, path, content=body)
        except httpx.HTTPError as error:
            self._outcome.failures.append(f"{self._name} {method}: {error!r}")
            return
        self._outcome.seconds.append(time.perf_counter() - began)
        if (answer.status_code, answer.text) != (200, path):
            self._outcome.failures.append(f"{self._name} {method}: {answer.status_code} {answer.text[:300]}")


def race(
    client: Callable[[], httpx.Client],
    *,
    namespace: str,
    names: list[str],
    rounds: int,
    previews: Mapping[str, Callable[[], httpx.Client]] | None = None,
) -> Outcome:
    """So many rounds in all, shared by sandboxes that are there already with `SPEC`; or with
    `PREVIEW_SPEC`, when there are clients of their previews.
    """
    racers = [
        PreviewRacer(client, namespace=namespace, name=name, preview=previews[name])
        if previews
        else Racer(client, namespace=namespace, name=name)
        for name in names
    ]
    share = -(-rounds // len(racers))
    with ThreadPoolExecutor(len(racers)) as threads:
        for running in [threads.submit(racer.run, rounds=share) for racer in racers]:
            running.result()
        ending = [threads.submit(racer.end) for racer in racers]
    total = Outcome()
    for outcome in (each.result() for each in ending):
        total.rounds += outcome.rounds
        total.failures += outcome.failures
        total.seconds += outcome.seconds
        total.phases += outcome.phases
        total.wakes += outcome.wakes
    return total
