"""What the protocol allows a backup to be: where from, where to, how, and without what."""

import os
from collections.abc import Sequence

from sandpod_runtime.errors import Fault
from sandpod_runtime.models.backup import Compression, UploadPart
from sandpod_runtime.paths import LONGEST, shown
from sandpod_runtime.search.excludes import problem_of
from sandpod_runtime.search.gitignore import MOST_PATTERNS

DIRECTORIES = ("/workspace", "/home", "/tmp", "/var/tmp", "/app")  # noqa: S108 (the protocol's list)
ARCHIVES = "/var/backups"
# The standard library has neither lz4 nor zstd: what each is chosen for, as a level of gzip.
LEVELS = {"lz4": 1, "zstd": 3, "gzip": 6}
_DEFAULT = "lz4"


def refusal(reason: str) -> Fault:
    return Fault("INVALID_BACKUP_CONFIG", reason, context={"reason": reason})


def directory(path: str | None, *, allowed: Sequence[str]) -> str:
    path = _path(path, field="dir")
    if not any(path == each or path.startswith(f"{each}/") for each in allowed):
        raise refusal(f"dir must be in one of {', '.join(allowed)}")
    return path


def archive(path: str | None, *, allowed: Sequence[str]) -> str:
    path = _path(path, field="archivePath")
    if not any(path.startswith(f"{each}/") for each in allowed) or path.endswith(("/", "/.")):
        raise refusal(f"archivePath must be a file below {' or '.join(allowed)}")
    return path


def level(compression: Compression | None) -> int:
    if compression is None:
        return LEVELS[_DEFAULT]
    threads = compression.threads
    if threads is not None and not (threads >= 1 and float(threads).is_integer()):
        raise refusal("compression.threads must be an integer from 1")
    try:
        return LEVELS[compression.format or _DEFAULT]
    except KeyError:
        raise refusal(f"compression.format must be one of {', '.join(LEVELS)}") from None


def exclude_lines(excludes: Sequence[str]) -> list[str]:
    """As lines of a .gitignore: each matches at any depth, whatever stars it is wrapped in."""
    if len(excludes) > MOST_PATTERNS:
        raise refusal(f"there may be at most {MOST_PATTERNS} excludes")
    lines: list[str] = []
    for given in excludes:
        pattern = given.removeprefix("**/").removesuffix("/**").replace("/**/", "/").strip("/")
        if not pattern:
            continue
        line = f"**/{pattern}" if "/" in pattern else pattern
        if line[0] in "!#":
            line = f"\\{line}"  # to .gitignore they would mean something
        if problem := problem_of(line):
            raise refusal(f"excludes: {problem}")
        lines.append(line)
    return lines


def check_parts(parts: Sequence[UploadPart] | None) -> None:
    if not parts:
        raise refusal("parts must not be empty")
    for part in parts:
        if part.part_number < 1 or part.offset < 0 or part.size < 1 or not part.url.startswith("https://"):
            raise refusal("a part needs partNumber >= 1, an https url, offset >= 0 and size >= 1")


def backup_id(archive_path: str) -> str:
    return shown(archive_path.rpartition("/")[2].removesuffix(".sqsh"))


def _path(path: str | None, *, field: str) -> str:
    if not path or not path.startswith("/"):
        raise refusal(f"{field} must be an absolute path")
    if "\0" in path or len(os.fsencode(path)) > LONGEST:
        raise refusal(f"{field} must have no NUL and at most {LONGEST} bytes")
    if ".." in path.split("/"):
        raise refusal(f"{field} must not contain ..")
    while "//" in path:
        path = path.replace("//", "/")
    return path.rstrip("/") or "/" if field == "dir" else path
