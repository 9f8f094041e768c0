"""What the runtime is told when it starts: the command line, and the one variable that a pod's spec carries.

Everything else arrives later, in the bind, so that a pod can start before anybody knows whom it is for.
"""

import os
import string
from dataclasses import dataclass

CONTROL_PORT = 3000
WORKSPACE = "/workspace"
BIND_VARIABLE = "SANDPOD_BIND_SHA256"
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
    return Options(
        port=chosen.port, workspace=chosen.workspace, log_level=chosen.log_level, bind_sha256=digest
    )


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
    found = parser.parse_args(arguments)
    if not 0 <= found.port <= 65535:
        raise OptionsError(f"--port {found.port}: a port is a number from 0 to 65535")
    if not found.workspace.startswith("/"):
        raise OptionsError(f"--workspace {found.workspace}: give an absolute path")
    return Options(
        port=found.port,
        insecure=found.insecure,
        workspace=found.workspace,
        log_level=found.log_level,
    )
