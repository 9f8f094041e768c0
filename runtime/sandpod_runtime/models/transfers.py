"""Files as raw bytes: in the query, because the body is the file."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import LONGEST_MS, Reply
from sandpod_runtime.models.files import Mode, PathRequest

Digest = Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$", description="SHA-256 of the whole file, in hex")]
Size = Annotated[int, Meta(ge=0, le=LONGEST_MS)]


class RawQuery(msgspec.Struct, rename="camel", kw_only=True):
    path: str | None = None
    session_id: str | None = None


class PutQuery(RawQuery):
    sha256: Digest | None = None
    mode: Annotated[str | None, Meta(description="permissions as octal digits, such as 644")] = None
    create_only: bool = False


class PutReply(Reply):
    path: str
    size: int
    sha256: Annotated[str, Meta(description="only when one was given")] | UnsetType = UNSET


class UploadRequest(PathRequest):
    size: Annotated[Size, Meta(description="of the whole file, if it is known")] | None = None
    sha256: Digest | None = None
    mode: Mode | None = None


class UploadReply(Reply):
    id: str
    path: str
    offset: Annotated[int, Meta(description="how many bytes are here: where the next part begins")]
    size: int | UnsetType = UNSET


class PartQuery(msgspec.Struct, rename="camel", kw_only=True):
    offset: Annotated[Size, Meta(description="where the part begins; it has to be the upload's offset")]
