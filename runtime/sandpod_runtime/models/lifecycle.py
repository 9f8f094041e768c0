"""The bind: whom a runtime is for, and how it shall live."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Reply


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


class BindReply(Reply):
    runtime_version: str


class LifecycleReply(Reply):
    bound: bool
    runtime_version: str
    started_at: str
    running_commands: int
    bound_at: str | UnsetType = UNSET
    sandbox: SandboxIdentity | UnsetType = UNSET
    pod: PodIdentity | UnsetType = UNSET
    sleep_after_seconds: float | UnsetType | None = UNSET
    keep_alive: bool | UnsetType = UNSET
