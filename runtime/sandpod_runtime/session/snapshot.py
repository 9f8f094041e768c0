"""A session's state at one moment, as other surfaces start from it."""

import msgspec


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    # What the session exports.
    environ: dict[str, str]
    # Shell text that makes a new shell like this one: variables, functions, aliases, options.
    script: bytes
    # What that text cannot bring back, in words for a reader.
    lost: list[str]
