"""The bytes of an archive as they are pushed in, unzipped on the way, and counted against the limits."""

import zlib
from dataclasses import dataclass

from sandpod_runtime.archive.member import BadArchiveError, Reading

_PIECE = 262_144
GZIP = b"\x1f\x8b"
# Before so much has come out, any ratio is harmless.
_RATIO_COUNTS_FROM = 64 << 20


class LimitError(Exception):
    """The archive holds more than it may; the message names the limit."""

    def __init__(self, message: str, *, limit: int, found: int) -> None:
        super().__init__(message)
        self.limit = limit
        self.found = found


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    total: int
    file: int
    entries: int
    ratio: int
    depth: int


class Inflow:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._data = b""
        self._at = 0
        # What came in and is not unzipped yet.
        self._zipped = b""
        self._unzip: "zlib._Decompress | None" = None  # noqa: UP037  # pyright: ignore[reportPrivateUsage]
        self._more = False
        # The first byte of what may be another gzip file.
        self._half = b""
        self.received = 0
        self.delivered = 0

    def begin(self) -> Reading[bytes]:
        """The first bytes, for whoever has to know the format; from here on gzip is taken off."""
        while len(self._data) < 4:
            chunk = yield
            if not chunk:
                break
            self.received += len(chunk)
            self._data += chunk
        first = self._data[:4]
        if first.startswith(GZIP):
            self._zipped, self._data = self._data, b""
            self._unzip = zlib.decompressobj(31)
        else:
            self._count(len(self._data))
        return first

    def exactly(self, count: int, *, or_end: bool = False) -> Reading[bytes]:
        """With `or_end`, nothing when the stream ends before the first byte."""
        at = self._at
        if len(self._data) - at >= count:
            self._at = at + count
            return self._data[at : at + count]
        parts: list[bytes] = []
        missing = count
        while missing:
            part = yield from self.some(missing)
            if not part:
                if or_end and missing == count:
                    return b""
                raise BadArchiveError("the archive ends too early")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def some(self, most: int) -> Reading[bytes]:
        """What there is, at most so much; nothing at the end of the stream."""
        if self._at == len(self._data):
            self._data = yield from self._next()
            self._at = 0
        at = self._at
        self._at = min(len(self._data), at + most)
        return self._data[at : self._at]

    def drain(self) -> Reading[None]:
        """To the end, where gzip has its checksum."""
        while (yield from self.some(_PIECE)):
            pass

    def _next(self) -> Reading[bytes]:
        while True:
            if self._zipped or self._more:
                if piece := self._unzipped():
                    self._count(len(piece))
                    return piece
                continue
            chunk = yield
            if not chunk:
                if self._unzip is not None and not self._unzip.eof:
                    raise BadArchiveError("the archive ends too early")
                return b""
            self.received += len(chunk)
            if self._unzip is None:
                self._count(len(chunk))
                return chunk
            self._zipped, self._half = self._half + chunk, b""

    def _unzipped(self) -> bytes:
        assert self._unzip is not None
        if self._unzip.eof:
            # gzip files may follow each other; other bytes after one are padding.
            zipped, self._zipped, self._more = self._zipped, b"", False
            if zipped.startswith(GZIP):
                self._unzip = zlib.decompressobj(31)
                self._zipped = zipped
            elif zipped == GZIP[:1]:
                self._half = zipped
            return b""
        try:
            piece = self._unzip.decompress(self._zipped, _PIECE)
        except zlib.error as error:
            raise BadArchiveError(f"the gzip stream is damaged: {error}") from error
        self._zipped = self._unzip.unused_data if self._unzip.eof else self._unzip.unconsumed_tail
        # A full piece may have used up the input and still not be all that it stands for.
        self._more = len(piece) == _PIECE and not self._unzip.eof
        return piece

    def _count(self, more: int) -> None:
        self.delivered += more
        check_total(self._limits, delivered=self.delivered)
        check_ratio(self._limits, received=self.received, delivered=self.delivered)


def check_total(limits: Limits, *, delivered: int) -> None:
    if delivered > limits.total:
        raise LimitError(
            f"the archive unpacks to more than {limits.total} bytes, which is the limit (maxBytes)",
            limit=limits.total,
            found=delivered,
        )


def check_ratio(limits: Limits, *, received: int, delivered: int) -> None:
    if delivered > _RATIO_COUNTS_FROM and delivered > received * limits.ratio:
        raise LimitError(
            f"the archive unpacks to more than {limits.ratio} times its size, which is the limit (maxRatio)",
            limit=limits.ratio,
            found=delivered // max(1, received),
        )
