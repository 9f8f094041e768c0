"""The bodies of requests, checked while they are decoded. Unknown fields are ignored, as a newer client
may send them.

Field names are snake case here and camel case on the wire.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# Numbers up to here are exact in JavaScript; nothing longer is a plausible time in milliseconds.
LONGEST_MS = 2**53
LARGEST_OUTPUT = 1 << 30

Encoding = Literal["utf-8", "base64"]
Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_MS)]


class ExecuteRequest(msgspec.Struct, rename="camel", kw_only=True):
    command: str | None = None
    session_id: str | None = None
    timeout_ms: Milliseconds | None = None
    env: dict[str, str | None] | None = None
    cwd: str | None = None
    origin: str | None = None
    background: bool | None = None
    # What 0.12 does not have.
    stdin: str | None = None
    stdin_encoding: Encoding = "utf-8"
    output_encoding: Encoding = "utf-8"
    max_output_bytes: Annotated[int, Meta(ge=0, le=LARGEST_OUTPUT)] | None = None
    on_disconnect: Literal["detach", "kill"] | None = None


class SandboxIdentity(msgspec.Struct, rename="camel", kw_only=True):
    namespace: str
    name: str
    uid: str


class PodIdentity(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    uid: str


class LifecycleSettings(msgspec.Struct, rename="camel", kw_only=True):
    sleep_after_seconds: Annotated[float, Meta(ge=0)] | None = None
    keep_alive: bool = False


class BindRequest(msgspec.Struct, rename="camel", kw_only=True):
    sandbox: SandboxIdentity
    pod: PodIdentity
    credential: Annotated[str, Meta(min_length=16, max_length=256)]
    env: dict[str, str] = {}
    lifecycle: LifecycleSettings = msgspec.field(default_factory=LifecycleSettings)
