"""Sends a request over a socket of its own and reads the answer, with a bound on how long that may take."""

import base64
import http.client
import os
import socket
import struct
import time
from dataclasses import dataclass, field

from tests.fuzz.attempts import Attempt

TIMEOUT = 10.0
# How much of a stream is read, and how long nothing has to come before the client leaves.
_STREAM_BYTES = 200_000
_STREAM_SECONDS = 0.6
_QUIET_SECONDS = 0.12
_ODD_FRAMES = [
    b"\x81\x82",  # the rest never comes
    b"\x81\x05hello",  # not masked
    b"\x8f\x80\0\0\0\0",  # an opcode that does not exist
    b"\xf1\x80\0\0\0\0",  # reserved bits
    b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",  # longer than anything
    b"\x89\xfe\x00\x7e\0\0\0\0" + b"x" * 126,  # a ping that is too long
]


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    # Whether all of it was read.
    whole: bool = False
    problem: str = ""


def send(attempt: Attempt, *, port: int, number: int) -> Answer:
    answer = Answer()
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        try:
            data = attempt.bytes(port)
            if attempt.manner == "socket":
                data = _upgrade(data)
            connection.sendall(data)
            if attempt.manner == "wait":
                # It may be right that nothing comes.
                connection.settimeout(_STREAM_SECONDS)
            if attempt.manner in ("cut", "hung up"):
                _leave(connection, number)
                return answer
            response = http.client.HTTPResponse(connection, method=attempt.method)
            response.begin()
            answer.status = response.status
            answer.headers = {name.lower(): value for name, value in response.getheaders()}
            if answer.status == 101:
                answer.body = _talk(connection, number)
            elif attempt.manner == "stream" and answer.status == 200:
                _read_stream(connection, response, answer)
            else:
                answer.body = response.read()
                answer.whole = True
        except TimeoutError:
            if attempt.manner == "wait":
                return answer
            answer.problem = f"no whole answer within {TIMEOUT:.0f} s"
        except (http.client.HTTPException, ConnectionError) as error:
            if attempt.manner in ("cut", "hung up"):
                return answer
            answer.problem = f"{type(error).__name__}: {error}"
    return answer


def _leave(connection: socket.socket, number: int) -> None:
    """At once, after a moment, or with a reset."""
    if number % 3 == 0:
        time.sleep(0.01)
    if number % 3 == 1:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _read_stream(connection: socket.socket, response: http.client.HTTPResponse, answer: Answer) -> None:
    """A little of it, or all of it where it ends by itself."""
    connection.settimeout(_QUIET_SECONDS)
    until = time.monotonic() + _STREAM_SECONDS
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) < _STREAM_BYTES and time.monotonic() < until:
            if not (part := response.read1(65_536)):
                answer.whole = True
                break
            parts.append(part)
    except TimeoutError:
        pass
    answer.body = b"".join(parts)


def _upgrade(request: bytes) -> bytes:
    key = base64.b64encode(b"0123456789abcdef").decode()
    head, _, _ = request.partition(b"\r\n\r\n")
    extra = ["", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    return head + "\r\n".join([*extra, f"Sec-WebSocket-Key: {key}", "", ""]).encode()


def _talk(connection: socket.socket, number: int) -> bytes:
    """Keys, control messages, and at last frames that are none."""
    connection.settimeout(_QUIET_SECONDS)
    frames = [
        frame(b"echo hello\n", opcode=2),
        frame(b'{"type":"resize","cols":100,"rows":40}', opcode=1),
        frame(b'{"type":"resize","cols":-1,"rows":"x"}', opcode=1),
        frame(b"{nonsense", opcode=1),
        frame(b"", opcode=9),
        frame(b"x" * 5000 + b"\x03", opcode=2),
        frame(b"\xff\xfe", opcode=1),
    ]
    received = b""
    try:
        for each in frames[: number % len(frames) + 1]:
            connection.sendall(each)
        if number % 2:
            connection.sendall(_ODD_FRAMES[number // 2 % len(_ODD_FRAMES)])
        while len(received) < _STREAM_BYTES and (part := connection.recv(65_536)):
            received += part
    except (TimeoutError, ConnectionError):
        pass
    return received


def frame(data: bytes, *, opcode: int) -> bytes:
    """Masked, as a client has to."""
    mask = os.urandom(4)
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + size + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
