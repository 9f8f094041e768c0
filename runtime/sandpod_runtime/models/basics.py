"""Replies that tell about the runtime."""

from sandpod_runtime.models.common import Reply


class PingReply(Reply):
    status: str
    message: str
    uptime: float


class VersionReply(Reply):
    version: str
    runtime_version: str


class CommandsReply(Reply):
    available_commands: list[str]
    count: int
