"""A bare client of the Kubernetes API: one kept connection, no library between clock and socket.

The benchmarks time the product, not a client library; so requests are made by http.client and JSON.
"""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

Json = dict[str, Any]

# A connection that was idle for longer may have been closed by the API server.
LONGEST_IDLE = 20.0


class RefusedError(Exception):
    """The API server answered with an error status."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body[:500]}")
        self.status = status


class Api:
    """Requests with the identity of a kubeconfig that holds a client certificate, as kind writes it."""

    def __init__(self, kubeconfig: Path) -> None:
        config: Json = yaml.safe_load(kubeconfig.read_text())
        cluster: Json = config["clusters"][0]["cluster"]
        user: Json = config["users"][0]["user"]
        self._context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            self._context.load_cert_chain(pair.name)
        address = urlsplit(str(cluster["server"]))
        self._host, self._port = address.hostname or "", address.port or 443
        self._connection = self._connect()
        self._used = time.monotonic()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=120)

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """One request on the kept connection; an error status raises."""
        return json.loads(self.raw(method, path, body))

    def raw(self, method: str, path: str, body: Json | None = None) -> bytes:
        """Like `request`, for answers that are not JSON."""
        data = None if body is None else json.dumps(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if time.monotonic() - self._used > LONGEST_IDLE:
            self._connection.close()  # the next request connects again
        self._used = time.monotonic()
        self._connection.request(method, path, data, {"Content-Type": kind})
        response = self._connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise RefusedError(response.status, content.decode(errors="replace"))
        return content

    def watch(self, path: str, *, labels: str = "") -> "Watch":
        """The events of a collection from now on, each with the moment at which it arrived."""
        return Watch(self.stream(path, labels=labels))

    def stream(
        self, path: str, *, version: str | None = None, labels: str = ""
    ) -> http.client.HTTPSConnection:
        """The connection of such a watch, from now or a version on; its response has a line per event."""
        version = version or self.request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
        connection = self._connect()
        connection.request("GET", f"{path}?watch=1&resourceVersion={version}&labelSelector={labels}")
        return connection


class _Events:
    def __init__(self) -> None:
        self.seen: list[tuple[float, Json]] = []
        self.arrived = threading.Condition()


class Watch:
    """Reads a watch in a thread, so that an event's time is not the time at which somebody asked for it."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        # By the object's name: of hundreds who wait, an event wakes those whose it is.
        self._named: defaultdict[str, _Events] = defaultdict(_Events)
        self._naming = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
            for line in self._connection.getresponse():
                now = time.perf_counter()
                event: Json = json.loads(line)
                of = self._of(event["object"]["metadata"]["name"])
                with of.arrived:
                    of.seen.append((now, event))
                    of.arrived.notify_all()

    def _of(self, name: str) -> _Events:
        with self._naming:
            return self._named[name]

    def events(self, name: str, *, timeout: float = 60) -> Iterator[tuple[float, Json]]:
        """The events of the object of that name: first those that came already, then as they come."""
        of, seen, deadline = self._of(name), 0, time.perf_counter() + timeout
        while True:
            with of.arrived:
                while seen == len(of.seen):
                    if not of.arrived.wait(deadline - time.perf_counter()):
                        raise TimeoutError(f"nothing more about {name} within {timeout} s")
                moment, event = of.seen[seen]
            seen += 1
            yield moment, event

    def close(self) -> None:
        """Ends the connection and forgets what came."""
        if self._connection.sock is not None:
            # To close it would wait for the reader, which waits for the next event.
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()


def condition(obj: Json, kind: str) -> bool:
    """Whether a status condition of this type is True."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)
