"""One request to one endpoint: what is sent, byte by byte, and what is to be expected of the answer."""

import io
import json
import re
import shlex
import tarfile
import zipfile
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.values import ANYTHING, SCALARS, Strategy, Use, Values, rarely

Json = dict[str, Any]
Manner = Literal["whole", "cut", "hung up", "wait", "stream", "socket"]

# These would end the runtime, or bind it to somebody.
NEVER_WELL = (("POST", "/api/lifecycle/sleep"), ("POST", "/api/bind"))
# They read only; the others get no path outside of the workspace.
READS = re.compile(r"^/api/(read|exists|list-files|files/(stat|find|grep)|watch)")
STARTS_LASTING = re.compile(r"/process/start")

DEEP = [b"[" * 100_000, b'{"a":' * 50_000, b"[" * 3000 + b"]" * 3000]
NO_JSON = [b"", b"{", b"null", b"[]", b'"text"', b"\xff\xfe", b"{}{}", b"NaN", b"\xef\xbb\xbf{}", *DEEP]
HEADERS: list[tuple[str, str]] = [
    ("X-Session-Id", "one"),
    ("X-Session-Id", " "),
    ("X-Sandbox-Id", "x" * 300),
    ("X-Trace-Id", "tr_0123456789abcdef"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("traceparent", "00-nonsense"),
    ("Authorization", "Bearer something"),
    ("Accept-Encoding", "gzip, br"),
    ("Content-Encoding", "gzip"),
    ("Content-Type", "text/plain"),
    ("Content-Type", "multipart/form-data; boundary=x"),
    ("Expect", "100-continue"),
    ("Range", "bytes=0-10"),
    ("Range", "bytes=-1,5-x"),
    ("If-Modified-Since", "yesterday"),
    ("Connection", "close"),
    ("X-Long", "x" * 7000),
]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    route: tuple[str, str]
    method: str
    target: str
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    manner: Manner = "whole"

    @property
    def is_plain(self) -> bool:
        """Not one with another method or path than its endpoint's."""
        method, path = self.route
        expression = re.sub(r"{[^}]+}", "[^/]+", path)
        return self.method == method and bool(re.fullmatch(expression, self.target.partition("?")[0]))

    def bytes(self, port: int) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body) + (1000 if self.manner == 'cut' else 0)}")
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + self.body

    def curl(self, url: str) -> str:
        parts = ["curl", "-sS", "--path-as-is", "-X", self.method]
        for name, value in self.headers:
            parts += ["-H", f"{name}: {value[:200]}"]
        tail = ""
        if self.body:
            shown = self.body[:2000]
            parts += ["--data-binary", "@-"]
            tail = f" <<< $'{''.join(_escaped(each) for each in shown)}'"
            if len(self.body) > len(shown):
                tail += f"  # … {len(self.body)} bytes"
        return f"{shlex.join([*parts, url + self.target])}{tail}  # {self.manner}"


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in "'\\":
        return f"\\{character}"
    return character if 32 <= byte < 127 else f"\\x{byte:02x}"


def kind_of(path: str) -> str:
    """/api/process/{id}/logs: process."""
    return path.split("/")[2] if path.startswith("/api/") else ""


class Attempts:
    """The requests to one operation of the description."""

    def __init__(self, *, method: str, path: str, operation: Json, values: Values) -> None:
        self.route = (method, path)
        self._operation = operation
        self._values = values
        self._use = Use(
            reads=bool(READS.match(path)),
            lasting=bool(STARTS_LASTING.search(path)),
            kind=kind_of(path),
        )
        content = operation.get("requestBody", {}).get("content", {})
        self._schema: Json | None = content.get("application/json", {}).get("schema")
        self._raw = any("schema" not in each for each in content.values())
        responses = operation["responses"]
        self.is_socket = "101" in responses
        self.is_stream = "text/event-stream" in responses.get("200", {}).get("content", {})

    def strategy(self) -> Strategy:
        return st.composite(self._draw)()

    def _draw(self, draw: Any) -> Attempt:
        method, path = self.route
        target = re.sub(
            r"{[^}]+}",
            lambda _: quote(draw(self._values.id(self._use.kind)).encode("utf-8", "replace"), safe=""),
            path,
        )
        target += self._query(draw)
        if rarely(draw, 30):
            method, target = draw(_strange(method, target))
        some = st.lists(st.sampled_from(HEADERS), max_size=2)
        headers: list[tuple[str, str]] = draw(some) if rarely(draw, 5) else []
        body = self._body(draw) if method in ("POST", "PUT", "DELETE", "PATCH") else b""
        return Attempt(
            route=self.route,
            method=method,
            target=target,
            headers=headers,
            body=body,
            manner=self._manner(draw, method),
        )

    def _manner(self, draw: Any, method: str) -> Manner:
        if self.is_socket:
            return draw(st.sampled_from(["socket", "socket", "socket", "whole"]))
        if method in ("POST", "PUT") and rarely(draw, 30):
            return "cut"
        if rarely(draw, 30):
            return "hung up"
        if self.route[1].endswith("/wait"):
            return "wait"
        return "stream" if self.is_stream else "whole"

    def _query(self, draw: Any) -> str:
        pairs: list[str] = []
        for each in self._operation.get("parameters", []):
            if each["in"] == "query" and (not rarely(draw, 12) if each["required"] else draw(st.booleans())):
                right = self._values.field(each["name"], each["schema"], use=self._use)
                value = draw(SCALARS if rarely(draw, 12) else right)
                pairs.append(f"{each['name']}={quote(str(value).encode('utf-8', 'replace'))}")
        if rarely(draw, 20):
            pairs.append(
                draw(st.sampled_from(["unknown=1", "=", "&&", "%zz=%", "path=%00", "a=" + "x" * 3000]))
            )
        return f"?{'&'.join(pairs)}" if pairs else ""

    def _body(self, draw: Any) -> bytes:
        if self._schema is None:
            return draw(_raw) if self._raw else b""
        if self.route in NEVER_WELL or rarely(draw, 20):
            return draw(st.sampled_from(NO_JSON) | st.binary(max_size=50))
        if rarely(draw, 30):
            return _json(draw(ANYTHING))
        body: Any = draw(self._values.body(self._schema, use=self._use))
        if body and rarely(draw, 6):
            self._spoil(draw, body)
        return _json(body)

    @staticmethod
    def _spoil(draw: Any, body: Json) -> None:
        name = draw(st.sampled_from(sorted(body)))
        if draw(st.booleans()):
            del body[name]
        # Not where a text says what is done where.
        elif isinstance(value := draw(ANYTHING), str) and isinstance(body[name], str):
            body[name] = None
        else:
            body[name] = value


def _tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        file = tarfile.TarInfo("packed/file")
        file.size = 5
        archive.addfile(file, io.BytesIO(b"hello"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "packed/file"
        archive.addfile(link)
    return packed.getvalue()


def _zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("packed/file", "hello")
    return packed.getvalue()


_raw = st.binary(max_size=200) | st.sampled_from(
    [_tar(), _tar()[:60], _zip(), _zip()[:60], b"x" * 300_000, b"\x1f\x8b\x08\x00", b"PK\x03\x04", b""]
)


def _json(value: Any) -> bytes:
    text = json.dumps(value)  # with NaN and lone surrogates, as they come
    return text.encode()


@st.composite
def _strange(draw: Any, method: str, target: str) -> tuple[str, str]:
    """Another method, or a path that is nearly this one."""
    if draw(st.booleans()):
        return draw(
            st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO"])
        ), target
    path, mark, query = target.partition("?")
    other = draw(
        st.sampled_from(
            [
                path + "/",
                path + "//",
                path.upper(),
                path.replace("/api", "/%61pi"),
                path.replace("/", "//"),
                path + "/%00",
                path + "/%ff%fe",
                path + "/..%2f..",
                "/api/../etc/passwd",
                "/" + "x" * 7000,
                "/api/process/%F0%9F%92%A9",
                "/%",
                "/;a=b",
                "*",
            ]
        )
    )
    return method, other + mark + query
