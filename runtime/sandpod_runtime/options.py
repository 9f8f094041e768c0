"""What the runtime is told when it starts: the command line, and the one variable that a pod's spec carries.

Everything else arrives later, in the bind, so that a pod can start before anybody knows whom it is for.
"""

import os
import string
from dataclasses import dataclass, replace

CONTROL_PORT = 3000
WORKSPACE = "/workspace"
BIND_VARIABLE = "SANDPOD_BIND_SHA256"
# Where the kubelet reads why a container has ended.
TERMINATION_LOG = "/dev/termination-log"
# A pod's user namespace holds no more.
LARGEST_UID = 65_535
LEVELS = ("debug", "info", "warning", "error")


class OptionsError(Exception):
    """The runtime cannot start with these options; the message says what to change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    port: int = CONTROL_PORT
    insecure: bool = False
    workspace: str = WORKSPACE
    log_level: str = "info"
    bind_sha256: str = ""
    state: str | None = None
    # Without a bind nobody says so; None is never.
    sleep_after: float | None = None
    termination_log: str = TERMINATION_LOG
    # Whom commands run as, in a world of their own; None: as the runtime itself.
    strict: int | None = None


def read(arguments: list[str]) -> Options:
    chosen = _parse(arguments) if arguments else Options()
    if chosen.insecure:
        return chosen
    digest = os.environ.get(BIND_VARIABLE, "").strip().lower()
    if len(digest) != 64 or not set(digest) <= set(string.hexdigits):
        raise OptionsError(
            f"{BIND_VARIABLE} must hold the SHA-256 of the bind token, as 64 hexadecimal digits. "
            "The operator sets it; to try the runtime on your own machine, add --insecure."
        )
    return replace(chosen, bind_sha256=digest)


def _parse(arguments: list[str]) -> Options:
    # In a pod there are no arguments, and a cold start does without this import.
    import argparse

    parser = argparse.ArgumentParser(
        prog="sandpod-runtime", description="Serves a sandbox: commands over HTTP, from inside it."
    )
    parser.add_argument("--port", type=int, default=CONTROL_PORT, help="default: 3000; 0 takes a free one")
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="for a laptop: loopback only, no credential, no bind; whoever can connect runs commands as you",
    )
    parser.add_argument("--workspace", default=WORKSPACE, help="where commands start (default: /workspace)")
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="what shall outlive a sleep (default: /var/lib/sandpod where it is writable, else nothing)",
    )
    parser.add_argument(
        "--sleep-after",
        type=float,
        metavar="SECONDS",
        help="end after so long without work (default: never, unless a bind says so)",
    )
    parser.add_argument(
        "--termination-log",
        default=TERMINATION_LOG,
        metavar="FILE",
        help="where to write why it ended (default: /dev/termination-log where that is)",
    )
    parser.add_argument(
        "--strict",
        type=int,
        metavar="UID",
        help="started as root of a user namespace: run commands as UID, where they cannot see the runtime",
    )
    found = parser.parse_args(arguments)
    if not 0 <= found.port <= 65535:
        raise OptionsError(f"--port {found.port}: a port is a number from 0 to 65535")
    for option in ("workspace", "state", "termination_log"):
        path: str | None = getattr(found, option)
        if path is not None and not path.startswith("/"):
            raise OptionsError(f"--{option.replace('_', '-')} {path}: give an absolute path")
    if found.sleep_after is not None and not found.sleep_after > 0:
        raise OptionsError(f"--sleep-after {found.sleep_after}: give a number of seconds above 0")
    if found.strict is not None and not 0 <= found.strict <= LARGEST_UID:
        raise OptionsError(f"--strict {found.strict}: a UID is a number from 0 to {LARGEST_UID}")
    return Options(
        port=found.port,
        insecure=found.insecure,
        workspace=found.workspace,
        log_level=found.log_level,
        state=found.state,
        sleep_after=found.sleep_after,
        termination_log=found.termination_log,
        strict=found.strict,
    )
