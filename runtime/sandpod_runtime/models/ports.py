"""Ports: what listens, and waiting until something does."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Reply


class ListeningPort(msgspec.Struct, rename="camel", kw_only=True):
    port: int
    address: str
    uid: int
    control: Annotated[bool, Meta(description="This is the runtime's own port.")]
    pid: int | UnsetType = UNSET
    name: Annotated[str, Meta(description="The program's name.")] | UnsetType = UNSET
    command: Annotated[str, Meta(description="Its command line, at most 4 KiB of it.")] | UnsetType = UNSET
    process_id: Annotated[str, Meta(description="Of /api/process: the process that it belongs to.")] | (
        UnsetType
    ) = UNSET


class PortsReply(Reply):
    ports: list[ListeningPort]
    truncated: bool


class PortWatchRequest(msgspec.Struct, rename="camel", kw_only=True):
    port: Annotated[int, Meta(ge=1, le=65535)]
    mode: Literal["http", "tcp"] = "http"
    path: Annotated[str, Meta(max_length=4096)] = "/"
    status_min: Annotated[int, Meta(ge=0, le=999)] = 200
    status_max: Annotated[int, Meta(ge=0, le=999)] = 399
    process_id: str | None = None
    interval: Annotated[float, Meta(description="Milliseconds between looks, from 100 to 10 000.")] = 500


class PortEvent(msgspec.Struct, rename="camel", kw_only=True, tag_field="type"):
    """These have no time: that is the protocol's."""

    port: int


class PortWatchingEvent(PortEvent, tag="watching"):
    pass


class PortReadyEvent(PortEvent, tag="ready"):
    status_code: int | UnsetType = UNSET


class PortProcessExitedEvent(PortEvent, tag="process_exited"):
    exit_code: int | None


class PortErrorEvent(PortEvent, tag="error"):
    error: str
