"""1 GiB down, up, and small and large messages of a WebSocket: to `large_program` behind a preview. Standard
library alone, as it runs in a pod too.
"""

import http.client
import json
import socket
import sys
import threading
import time
from dataclasses import dataclass

SIZE = 1 << 30
ECHOED = 1 << 28
PIECE = 1 << 20
ROUND_TRIPS = 2000
# A masked frame of text with 64 bytes, as a browser sends it.
MESSAGE = b"\x81\xc0" + bytes(68)


@dataclass(frozen=True)
class Place:
    """Whom to connect to, and whose preview is meant."""

    address: str
    port: int
    host: str


def down(place: Place) -> float:
    """Bytes a second."""
    connection = http.client.HTTPConnection(place.address, place.port, timeout=120)
    connection.request("GET", f"/large?{SIZE}", headers={"Host": place.host})
    began = time.perf_counter()
    answer = connection.getresponse()
    buffer, count = memoryview(bytearray(PIECE)), 0
    while got := answer.readinto(buffer):
        count += got
    connection.close()
    assert count == SIZE, (answer.status, count)
    return SIZE / (time.perf_counter() - began)


def up(place: Place) -> float:
    """Bytes a second, until the program has said that it has them all."""
    connection = http.client.HTTPConnection(place.address, place.port, timeout=120)
    began = time.perf_counter()
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", place.host)
    connection.putheader("Content-Length", str(SIZE))
    connection.endheaders()
    piece = bytes(PIECE)
    for _ in range(SIZE // PIECE):
        connection.sock.sendall(piece)
    answer = connection.getresponse()
    assert answer.read() == str(SIZE).encode(), answer.status
    connection.close()
    return SIZE / (time.perf_counter() - began)


def round_trips(place: Place) -> list[float]:
    """Seconds until each of many small messages was back, one after the other on one WebSocket."""
    took: list[float] = []
    with _websocket(place) as connection:
        for turn in range(ROUND_TRIPS + 200):
            began = time.perf_counter()
            connection.sendall(MESSAGE)
            _read(connection, len(MESSAGE))
            if turn >= 200:
                took.append(time.perf_counter() - began)
    return took


def echo(place: Place) -> float:
    """Bytes a second of a WebSocket on which as much comes back as is sent, at the same time."""
    with _websocket(place) as connection:
        # Not masked frame by frame: to whoever passes them on, frames are bytes.
        piece = bytes(PIECE)

        def send() -> None:
            for _ in range(ECHOED // PIECE):
                connection.sendall(piece)

        sending = threading.Thread(target=send, daemon=True)
        began = time.perf_counter()
        sending.start()
        _read(connection, ECHOED)
        took = time.perf_counter() - began
        sending.join(timeout=10)
    return ECHOED / took


def _websocket(place: Place) -> socket.socket:
    connection = socket.create_connection((place.address, place.port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"
    connection.sendall(f"GET /socket HTTP/1.1\r\nHost: {place.host}\r\n{upgrade}\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        assert piece, head
        head += piece
    assert head.startswith(b"HTTP/1.1 101 "), head
    return connection


def _read(connection: socket.socket, wanted: int) -> None:
    buffer = memoryview(bytearray(min(wanted, PIECE)))
    while wanted:
        got = connection.recv_into(buffer[: min(wanted, PIECE)])
        assert got, f"the connection ended {wanted} bytes early"
        wanted -= got


def _knock(place: Place) -> None:
    """Small requests, so that the large one is not the first: the gateway opens the short way after one."""
    for _ in range(5):
        connection = http.client.HTTPConnection(place.address, place.port, timeout=60)
        connection.request("GET", "/", headers={"Host": place.host})
        answer = connection.getresponse()
        assert answer.read() == b"0", answer.status
        connection.close()
        time.sleep(0.05)


def main() -> None:
    """In a pod: `python3 - ADDRESS PORT HOST` prints the figures as JSON."""
    address, port, host = sys.argv[1:]
    place = Place(address, int(port), host)
    found: dict[str, float | list[float]] = {}
    for measured in (down, up, echo, round_trips):
        _knock(place)
        found[measured.__name__] = measured(place)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
