"""Backups, as the protocol has them: replies carry no time."""

import msgspec


class Compression(msgspec.Struct, rename="camel", kw_only=True):
    """Every format is gzip here; it says how hard to try."""

    format: str | None = None
    threads: float | None = None


class CreateBackupRequest(msgspec.Struct, rename="camel", kw_only=True):
    dir: str | None = None
    archive_path: str | None = None
    gitignore: bool | None = None
    excludes: list[str] | None = None
    compression: Compression | None = None
    session_id: str | None = None


class CreateBackupReply(msgspec.Struct, rename="camel", kw_only=True):
    success: bool = True
    size_bytes: int
    archive_path: str


class RestoreBackupRequest(msgspec.Struct, rename="camel", kw_only=True):
    dir: str | None = None
    archive_path: str | None = None
    session_id: str | None = None


class RestoreBackupReply(msgspec.Struct, rename="camel", kw_only=True):
    success: bool = True
    dir: str


class UploadPart(msgspec.Struct, rename="camel", kw_only=True):
    part_number: int
    url: str
    offset: int
    size: int


class UploadPartsRequest(msgspec.Struct, rename="camel", kw_only=True):
    archive_path: str | None = None
    parts: list[UploadPart] | None = None
    session_id: str | None = None
