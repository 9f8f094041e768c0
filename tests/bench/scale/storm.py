"""Many requests at once, and the moments at which objects came to be what was waited for."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from tests.bench.api import Api, Json
from tests.bench.cluster import KUBECONFIG

# Method, path, body.
Request = tuple[str, str, Json | None]

# Each with a connection of its own.
CLIENTS = 8


class Arrivals:
    """When each object of a collection first was as wanted, from a watch that is read in a thread."""

    def __init__(self, api: Api, path: str, holds: Callable[[str, Json], bool]) -> None:
        self.moments: dict[str, float] = {}
        self._api = api
        self._path = path
        self._holds = holds
        self._version = ""
        self._ended = False
        self._connection = api.stream(path)
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        # To close what the thread reads from would wait for the next event.
        with contextlib.suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def wait(self, count: int, *, within: float) -> None:
        deadline = time.monotonic() + within
        with self._changed:
            while len(self.moments) < count:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"{len(self.moments)} of {count} within {within:.0f} s")

    def _read(self) -> None:
        # The API server ends the watch of whoever does not keep up with it, as a busy machine makes us.
        while not self._ended:
            with contextlib.suppress(OSError, http.client.HTTPException):
                for line in self._connection.getresponse():
                    self._take(json.loads(line))
            if not self._ended:
                self._connection.close()
                self._connection = self._api.stream(self._path, version=self._version or None)

    def _take(self, event: Json) -> None:
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch was lost: {event['object']}")
        name = event["object"]["metadata"]["name"]
        self._version = event["object"]["metadata"]["resourceVersion"]
        if name not in self.moments and self._holds(event["type"], event["object"]):
            with self._changed:
                self.moments[name] = time.monotonic()
                self._changed.notify_all()


def in_phase(phase: str) -> Callable[[str, Json], bool]:
    return lambda kind, obj: kind != "DELETED" and obj.get("status", {}).get("phase") == phase


def gone(kind: str, _: Json) -> bool:
    return kind == "DELETED"


def send(requests: Sequence[Request]) -> dict[str, float]:
    """As fast as the API server takes them; the moment at which each was sent, by its object's name."""
    waiting = iter(requests)
    lock = threading.Lock()
    sent: dict[str, float] = {}

    def next_ones() -> Iterator[Request]:
        while True:
            with lock:
                each = next(waiting, None)
            if each is None:
                return
            yield each

    def work(_: int) -> None:
        api = Api(KUBECONFIG)
        for method, path, body in next_ones():
            name = body["metadata"]["name"] if body else path.rsplit("/", 1)[1]
            sent[name] = time.monotonic()
            api.raw(method, path, body)

    with ThreadPoolExecutor(CLIENTS) as pool:
        # To the end, so that an error of one is not lost.
        list(pool.map(work, range(CLIENTS)))
    return sent
