"""Replies that tell about the runtime."""

from typing import Literal

import msgspec

from sandpod_runtime.models.common import Reply


class PingReply(Reply):
    status: str
    message: str
    uptime: float


class ReadyReply(msgspec.Struct, kw_only=True):
    status: Literal["ready"] = "ready"


class VersionReply(Reply):
    version: str
    runtime_version: str


class CommandsReply(Reply):
    available_commands: list[str]
    count: int
