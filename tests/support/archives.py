"""Archives for tests: hostile ones made by hand, and whole trees to compare."""

import io
import os
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def tar(*members: tuple[Mapping[str, Any], bytes], zipped: bool = False) -> bytes:
    """Each member as attributes of a TarInfo, and its data."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if zipped else "w", format=tarfile.PAX_FORMAT) as archive:
        for attributes, data in members:
            info = tarfile.TarInfo()
            info.size = len(data)
            for name, value in attributes.items():
                setattr(info, name, value)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file(name: str, data: bytes = b"x", **more: Any) -> tuple[dict[str, Any], bytes]:
    return {"name": name, "mode": 0o644, **more}, data


def link(name: str, target: str) -> tuple[dict[str, Any], bytes]:
    return {"name": name, "type": tarfile.SYMTYPE, "linkname": target}, b""


def hardlink(name: str, target: str) -> tuple[dict[str, Any], bytes]:
    return {"name": name, "type": tarfile.LNKTYPE, "linkname": target}, b""


def directory(name: str, **more: Any) -> tuple[dict[str, Any], bytes]:
    return {"name": name, "type": tarfile.DIRTYPE, "mode": 0o755, **more}, b""


def zipped(entries: Iterable[tuple[str, bytes, int]], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Names, data and Unix modes (with the kind of the file)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data, mode in entries:
            info = zipfile.ZipInfo(name, (2031, 4, 5, 6, 7, 8))
            info.external_attr = mode << 16
            info.compress_type = compression
            archive.writestr(info, data)
    return out.getvalue()


def tree(root: Path, *, times: bool = True) -> dict[str, tuple[Any, ...]]:
    """Everything below a directory that an archive keeps."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        mode = stat.S_IMODE(info.st_mode)
        when = info.st_mtime_ns if times else 0
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))  # noqa: PTH115
        elif path.is_dir():
            found[name] = ("directory", mode, when)
        elif path.is_file():
            found[name] = ("file", mode, when, path.read_bytes())
        else:
            found[name] = ("other",)
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def run(*command: str | Path, cwd: Path | None = None) -> bytes:
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, cwd=cwd).stdout
