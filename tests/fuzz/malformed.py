"""Requests that are almost HTTP: whole ones with something wrong in them, from a seed."""

import random
from collections.abc import Callable

METHODS = b"GET POST PUT DELETE HEAD OPTIONS PATCH TRACE CONNECT PRI get G\x00T FROB M-SEARCH \xff".split(
    b" "
)
TARGETS = (
    b"/",
    b"//evil.example/x",
    b"/%2f..%2fx",
    b"/../..",
    b"*",
    b"http://evil.example/",
    b"evil.example:443",
    b"http://[::1",
    b"//[bad",
    b"",
    b"/a b",
    b"/\x00",
    b"/\xff",
    b"/#x",
    b"/?" + b"x" * 20_000,
    b"/healthz",
    b"/v1/namespaces/default/sandboxes",
    b"/v1/namespaces/%2e%2e/sandboxes/hello/exec",
)
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.10", b"HTTP/", b"")
NAMES = (
    b"Host",
    b"Content-Length",
    b"Transfer-Encoding",
    b"Connection",
    b"Upgrade",
    b"Expect",
    b"Cookie",
    b"Authorization",
    b"X-Forwarded-For",
    b"X-Forwarded-Proto",
    b"Accept",
    b"Range",
    b"TE",
    b"Trailer",
    b"Origin",
    b"Sec-WebSocket-Key",
    b"Sec-WebSocket-Version",
    b"traceparent",
    b"X\x00Y",
    b"",
    b"X" * 9000,
)
VALUES = (
    b"0",
    b"5",
    b"-1",
    b"+5",
    b"5, 5",
    b"99999999999999999999",
    b"chunked",
    b"chunked, identity",
    b"gzip",
    b"\x0bchunked",
    b"keep-alive",
    b"close",
    b"upgrade, x",
    b"websocket",
    b"h2c",
    b"100-continue",
    b"bytes=0-,1-,2-",
    b"__Host-sandpod=x; a=b; \xff",
    b"Bearer \xff\xfe",
    b"Basic ::::",
    b"text/html",
    b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01",
    b"127.0.0.1, ::1, x",
    b"a\r\n folded",
    b"a\nb",
    b"a\rb",
    b"a\0b",
    b"",
    b"x" * 17_000,
)
BODIES = (
    b"",
    b"hello",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"fffffffffffffffff\r\n",
    b"-1\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5\r\nhelloworld\r\n",
    b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x00" * 70_000,
)
ENDS = (b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b"")


def request(choose: random.Random, *, hosts: list[bytes]) -> bytes:
    """A whole request for one of these hosts, and then up to three things wrong with it."""
    method, target, version = b"GET", b"/", b"HTTP/1.1"
    headers = [(b"Host", choose.choice(hosts))]
    body, end = b"", b"\r\n"
    for _ in range(choose.randrange(1, 4)):
        match choose.randrange(8):
            case 0:
                method = choose.choice(METHODS)
            case 1:
                target = choose.choice(TARGETS)
            case 2:
                version = choose.choice(VERSIONS)
            case 3 | 4:
                place = choose.randrange(len(headers) + 1)
                headers.insert(place, (choose.choice(NAMES), choose.choice(VALUES)))
            case 5:
                body = choose.choice(BODIES)
                length = choose.choice((b"Content-Length", b"Transfer-Encoding"))
                headers.append((length, b"chunked" if length == b"Transfer-Encoding" else b"%d" % len(body)))
            case 6:
                headers += [choose.choice(headers)] * choose.choice((1, 2, 1500))
            case _:
                end = choose.choice(ENDS)
    colon = choose.choice((*(b": ",) * 12, b":", b" : ", b"\t:"))
    lines = [b" ".join((method, target, version)), *(name + colon + value for name, value in headers)]
    data = b"\r\n".join(lines) + end + b"\r\n" + body
    return data if choose.randrange(5) else choose.choice(_DAMAGES)(choose, data)


def _flip(choose: random.Random, data: bytes) -> bytes:
    at = choose.randrange(len(data))
    return data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :]


def _cut(choose: random.Random, data: bytes) -> bytes:
    return data[: choose.randrange(1, len(data) + 1)]


def _insert(choose: random.Random, data: bytes) -> bytes:
    at = choose.randrange(len(data))
    return data[:at] + choose.randbytes(choose.randrange(1, 20)) + data[at:]


def _twice(choose: random.Random, data: bytes) -> bytes:
    return data + data[choose.randrange(len(data)) :]


def _noise(choose: random.Random, data: bytes) -> bytes:
    return choose.randbytes(min(len(data), 2000))


_DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _cut, _insert, _twice, _noise)
