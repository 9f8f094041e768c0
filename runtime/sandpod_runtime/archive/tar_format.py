"""The headers of tar: written as POSIX (pax) does, read as POSIX, GNU and old ones.

Not by the standard library's tarfile, which reads extended headers of any size into memory, remembers every
member, and is an import of two megabytes.
"""

import os

from sandpod_runtime.archive.inflow import Inflow
from sandpod_runtime.archive.member import BadArchiveError, Kind, Member, Reading

BLOCK = 512
END = bytes(2 * BLOCK)
_LARGEST_EXTENSION = 1 << 20
_LARGEST_OCTAL = 8**11 - 1
_LARGEST_ID = 8**7 - 1
_FLAGS: dict[Kind, bytes] = {"file": b"0", "hardlink": b"1", "symlink": b"2", "directory": b"5"}
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"5": "directory",
}
# Of what extended headers say, this is kept: they may say anything, again and again.
_SPARSE = "GNU.sparse"
_KEYS = frozenset(("path", "linkpath", "size", "mtime", "uid", "gid", _SPARSE))
_OTHERS = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file; pack it without its holes",
}


def padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


def header(member: Member) -> bytes:
    name = os.fsencode(member.name) + (b"/" if member.kind == "directory" else b"")
    target = os.fsencode(member.target)
    seconds, nanoseconds = divmod(member.mtime_ns, 1_000_000_000)
    records: list[tuple[bytes, bytes]] = []
    if not (_is_utf8(name) and _is_utf8(target)):
        records.append((b"hdrcharset", b"BINARY"))
    for key, value in ((b"path", name), (b"linkpath", target)):
        if len(value) > 100 or not value.isascii():
            records.append((key, value))
    if nanoseconds or not 0 <= seconds <= _LARGEST_OCTAL:
        records.append((b"mtime", _decimal(member.mtime_ns)))
    for key, number, largest in (
        (b"size", member.size, _LARGEST_OCTAL),
        (b"uid", member.uid, _LARGEST_ID),
        (b"gid", member.gid, _LARGEST_ID),
    ):
        if number > largest:
            records.append((key, b"%d" % number))
    extension = b""
    if records:
        data = b"".join(_record(key, value) for key, value in records)
        extension = (
            _block(name=b"PaxHeaders/" + name.rstrip(b"/").rpartition(b"/")[2], flag=b"x", size=len(data))
            + data
            + padding(len(data))
        )
    return extension + _block(
        name=name,
        flag=_FLAGS[member.kind],
        size=member.size,
        mode=member.mode,
        seconds=max(0, seconds),
        target=target,
        uid=member.uid,
        gid=member.gid,
    )


def _block(
    *,
    name: bytes,
    flag: bytes,
    size: int,
    mode: int = 0o644,
    seconds: int = 0,
    target: bytes = b"",
    uid: int = 0,
    gid: int = 0,
) -> bytes:
    before = b"".join(
        (
            name[:100].ljust(100, b"\0"),
            b"%07o\0" % (mode & 0o7777),
            b"%07o\0" % min(uid, _LARGEST_ID),
            b"%07o\0" % min(gid, _LARGEST_ID),
            b"%011o\0" % (size if size <= _LARGEST_OCTAL else 0),
            b"%011o\0" % min(seconds, _LARGEST_OCTAL),
        )
    )
    after = flag + target[:100].ljust(100, b"\0") + b"ustar\x0000"
    whole = (before + b" " * 8 + after).ljust(BLOCK, b"\0")
    return before + b"%06o\0 " % sum(whole) + whole[len(before) + 8 :]


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH KEY=VALUE\\n`, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %b=%b\n" % (length, key, value)


def _decimal(nanoseconds: int) -> bytes:
    sign = b"-" if nanoseconds < 0 else b""
    return sign + b"%d.%09d" % divmod(abs(nanoseconds), 1_000_000_000)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


class TarReader:
    """Members one after the other; in between the caller takes `member.size` bytes and what pads them."""

    def __init__(self, inflow: Inflow) -> None:
        self._inflow = inflow
        # What a global header said; git writes one with a comment.
        self._global: dict[str, bytes] = {}
        self._begun = False

    def next(self) -> Reading[Member | None]:
        extended: dict[str, bytes] = {}
        while True:
            block = yield from self._inflow.exactly(BLOCK, or_end=True)
            if not block.rstrip(b"\0"):
                return None
            if not _has_sum(block):
                raise BadArchiveError(
                    "a header of the tar archive is damaged"
                    if self._begun
                    else "this is no tar, tar.gz or zip"
                )
            self._begun = True
            flag = block[156:157]
            if flag in b"xgLK" and flag:
                data = yield from self._extension(_size(block))
                if flag == b"g":
                    self._global |= _records(data)
                elif flag == b"x":
                    extended |= _records(data)
                else:
                    extended["path" if flag == b"L" else "linkpath"] = data.rstrip(b"\0")
                continue
            if flag == b"S":
                yield from self._sparse_map(block)
            return _member(block, flag=flag, extended=self._global | extended)

    def _extension(self, size: int) -> Reading[bytes]:
        if size > _LARGEST_EXTENSION:
            raise BadArchiveError(f"an extended header has {size} bytes; the limit is {_LARGEST_EXTENSION}")
        data = yield from self._inflow.exactly(size)
        yield from self._inflow.exactly(-size % BLOCK)
        return data

    def _sparse_map(self, block: bytes) -> Reading[None]:
        """Step over the blocks that go on with a sparse file's map: they count as no data."""
        more = block[482]
        while more:
            more = (yield from self._inflow.exactly(BLOCK))[504]


def _has_sum(block: bytes) -> bool:
    """Whether its bytes add up to what it says."""
    blanked = block[:148] + b" " * 8 + block[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in blanked) if max(blanked) > 127 else -1
    try:
        return _number(block[148:156]) in (sum(blanked), signed)
    except BadArchiveError:
        return False


def _member(block: bytes, *, flag: bytes, extended: dict[str, bytes]) -> Member:
    name = _text(block[:100])
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        name = f"{prefix}/{name}"
    target = _text(block[157:257])
    if value := extended.get("path"):
        name = os.fsdecode(value)
    if value := extended.get("linkpath"):
        target = os.fsdecode(value)
    kind = _KINDS.get(flag, "other")
    reason = _OTHERS.get(flag, "of a kind that is not known") if kind == "other" else ""
    if _SPARSE in extended:
        kind, reason = "other", _OTHERS[b"S"]
    if kind == "file" and name.endswith("/"):
        kind = "directory"  # as tar was before POSIX
    size = _decimal_number(extended.get("size"), default=_size(block))
    return Member(
        name=name,
        kind=kind,
        # Of links and directories some programs write one, and no data after it.
        size=size if kind in ("file", "other") else 0,
        mode=_number(block[100:108]) & 0o7777,
        mtime_ns=_nanoseconds(extended.get("mtime"), default=_number(block[136:148])),
        target=target,
        uid=_decimal_number(extended.get("uid"), default=_number(block[108:116])),
        gid=_decimal_number(extended.get("gid"), default=_number(block[116:124])),
        reason=reason,
    )


def _text(field: bytes) -> str:
    return os.fsdecode(field.partition(b"\0")[0])


def _number(field: bytes) -> int:
    """Octal digits, or what GNU writes when they do not suffice: a marked byte and binary."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big", signed=True)
        return value + (1 << (8 * len(field) - 1)) if field[0] == 0x80 else value
    digits = field.partition(b"\0")[0].strip()
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        raise BadArchiveError("a header of the tar archive has a number that is none") from None


def _size(block: bytes) -> int:
    size = _number(block[124:136])
    if size < 0:
        raise BadArchiveError("a header of the tar archive has a negative size")
    return size


def _records(data: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data) and data[at] != 0:
        space = data.find(b" ", at, at + 20)
        length = _decimal_number(data[at:space] if space > at else b"-", default=0)
        key, equals, value = data[space + 1 : at + length].partition(b"=")
        if length <= space + 1 - at or at + length > len(data) or not equals or value[-1:] != b"\n":
            raise BadArchiveError("an extended header of the tar archive is damaged")
        name = key.decode("utf-8", "replace")
        if (name := _SPARSE if name.startswith(_SPARSE) else name) in _KEYS:
            found[name] = value[:-1]
        at += length
    return found


def _decimal_number(value: bytes | None, *, default: int) -> int:
    if value is None:
        return default
    if not value.isdigit() or len(value) > 19:
        raise BadArchiveError("an extended header of the tar archive has a number that is none")
    return int(value)


def _nanoseconds(value: bytes | None, *, default: int) -> int:
    if value is None:
        return default * 1_000_000_000
    whole, _, fraction = value.removeprefix(b"-").partition(b".")
    seconds = _decimal_number(whole, default=0)
    nanoseconds = seconds * 1_000_000_000 + _decimal_number(fraction[:9].ljust(9, b"0"), default=0)
    return -nanoseconds if value.startswith(b"-") else nanoseconds
