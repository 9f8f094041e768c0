"""The workspace that requests work in: files of every kind, and how to tell what was left behind."""

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

from tests.support.runtime import Runtime

_PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
# How files and directories of the runtime's own may be called while it works.
_USER = 61_234
_SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
_TEMPORARY = ("sandpod", ".tmp", ".part", ".upload")


def furnish(workspace: Path) -> None:
    (workspace / "sub" / "deep").mkdir(parents=True)
    for name in ("a", "b", "sub/c", "sub/deep/d", ".hidden", "text.txt", "ä€", "with space"):
        (workspace / name).write_text("one line\nanother line ä\nlast\n")
    (workspace / "binary.bin").write_bytes(bytes(range(256)) * 10)
    (workspace / "big.txt").write_text("line\n" * 200_000)
    (workspace / "picture.png").write_bytes(_PNG)
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(workspace / "socket"))
    (workspace / "link").symlink_to("a")
    (workspace / "loop").symlink_to("loop")
    (workspace / "broken").symlink_to("nowhere")
    _repository(workspace / "repository")
    if os.geteuid() == 0:
        # git refuses to work in what somebody else owns.
        for directory, _, files in os.walk(workspace / "repository"):
            for each in (directory, *(Path(directory, file) for file in files)):
                os.chown(each, _USER, _USER)
    with tarfile.open(workspace / "archive.tar.gz", "w:gz") as tar:
        tar.add(workspace / "sub", "sub")
    with zipfile.ZipFile(workspace / "archive.zip", "w") as archive:
        archive.write(workspace / "a", "a")
    for directory, _, files in os.walk(workspace):
        Path(directory).chmod(0o777)
        for file in files:
            if not Path(directory, file).is_symlink():
                Path(directory, file).chmod(0o666)
    # Not for the user that the runtime runs as.
    (workspace / "locked").write_text("secret")
    (workspace / "locked").chmod(0o600)
    (workspace / "locked-directory").mkdir(mode=0o700)


def _repository(path: Path) -> None:
    if not shutil.which("git"):
        return
    path.mkdir()
    (path / "file.txt").write_text("in a repository\n")
    git = ["git", "-C", str(path), "-c", "user.name=A", "-c", "user.email=a@example.invalid"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)


def somebody() -> list[str]:
    """What to put before the runtime's command so that it runs as a user who owns nothing."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
    if not all(each.stat().st_mode & 0o001 for each in Path(sys.executable).resolve().parents):
        # An interpreter in root's home: the runtime starts it again, for searches.
        prefix += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return prefix


def temporary(*places: Path) -> set[str]:
    """What looks like the runtime's own in these directories."""
    found: set[str] = set()
    for place in places:
        for directory, names, files in os.walk(place):
            found.update(
                str(Path(directory, name))
                for name in [*names, *files]
                if any(part in name for part in _TEMPORARY)
            )
    return found


def elsewhere() -> set[str]:
    """What there is of the runtime where everybody may write."""
    found: set[str] = set()
    for place in _SHARED:
        for each in place.iterdir() if place.is_dir() else ():
            with suppress(FileNotFoundError):  # others work there too
                if each.lstat().st_uid == _USER and any(part in each.name for part in _TEMPORARY):
                    found.add(str(each))
    return found


def inotifies(runtime: Runtime) -> int:
    count = 0
    for entry in Path(f"/proc/{runtime.pid}/fd").iterdir():
        try:
            count += "inotify" in str(entry.readlink())
        except OSError:
            continue
    return count
