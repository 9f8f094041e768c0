"""The environment of the user's commands: what it is, and what a client changes."""

from typing import Annotated

import msgspec
from msgspec import Meta

from sandpod_runtime.models.common import Reply


class EnvironmentReply(Reply):
    """What a stateless command starts with."""

    variables: dict[str, str]


class ChangeEnvironmentRequest(msgspec.Struct, rename="camel", kw_only=True):
    set: dict[str, str] = {}
    unset: Annotated[
        list[str],
        Meta(description="What programs need and an image may lack (PATH, HOME, USER) gets its default."),
    ] = []


class ChangeEnvironmentReply(Reply):
    changed: Annotated[list[str], Meta(description="The names that were set or unset.")]
    count: Annotated[int, Meta(description="How many variables there are now.")]
