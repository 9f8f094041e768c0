"""A program behind a preview that sends, takes and echoes as fast as its socket goes. Standard library
alone, as it runs in a sandbox too: `python3 large_program.py PORT`.
"""

import base64
import contextlib
import hashlib
import re
import socket
import sys
import threading

PIECE = 1 << 20
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept(listening: socket.socket) -> None:
    """A thread for each connection, until the socket is shut down."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(client,), daemon=True).start()


def _serve(client: socket.socket) -> None:
    """One request. `/large?N` is answered with N bytes, a WebSocket by its own bytes, all else by the size of
    its body.
    """
    with client, contextlib.suppress(OSError):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = client.recv(65_536)
            if not piece:
                return
            data += piece
        head, _, begun = data.partition(b"\r\n\r\n")
        large = re.match(rb"GET /large\?(\d+) ", head)
        key = re.search(rb"(?i)\r\nsec-websocket-key:\s*(\S+)", head)
        if key:
            _echo(client, key[1])
        elif large:
            _send(client, int(large[1]))
        else:
            length = re.search(rb"(?i)\r\ncontent-length:\s*(\d+)", head)
            _take(client, begun, int(length[1]) if length else 0)


def _send(client: socket.socket, left: int) -> None:
    _answer(client, left)
    piece = bytes(PIECE)
    while left:
        client.sendall(piece[:left] if left < PIECE else piece)
        left -= min(left, PIECE)


def _take(client: socket.socket, begun: bytes, wanted: int) -> None:
    buffer, count = memoryview(bytearray(PIECE)), len(begun)
    while count < wanted:
        got = client.recv_into(buffer)
        if not got:
            return
        count += got
    text = str(count).encode()
    _answer(client, len(text))
    client.sendall(text)


def _answer(client: socket.socket, length: int) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % length)


def _echo(client: socket.socket, key: bytes) -> None:
    """Of frames, all that matters here is that they come back."""
    accepted = base64.b64encode(hashlib.sha1(key + WEBSOCKET).digest())
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    client.sendall(switch + b"Sec-WebSocket-Accept: %s\r\n\r\n" % accepted)
    buffer = memoryview(bytearray(PIECE))
    while got := client.recv_into(buffer):
        client.sendall(buffer[:got])


if __name__ == "__main__":
    with socket.create_server(("0.0.0.0", int(sys.argv[1]))) as here:
        accept(here)
