"""How a session or a call in it fails, in the protocol's words."""

import os
import signal

from sandpod_runtime.errors import Fault
from sandpod_runtime.process.command import TIMED_OUT


def deleted(session_id: str) -> Fault:
    return Fault(
        "SESSION_DESTROYED", f"the session {session_id} was deleted", context={"sessionId": session_id}
    )


def stopping(session_id: str) -> Fault:
    return Fault(
        "SESSION_DESTROYED",
        f"the runtime is stopping, and ends what runs in the session {session_id}",
        context={"sessionId": session_id},
    )


def terminated(session_id: str, reason: str, *, exit_code: int | None = None) -> Fault:
    return Fault(
        "SESSION_TERMINATED",
        f"the session {session_id} has ended: {reason}",
        context={"sessionId": session_id, "exitCode": exit_code},
        suggestion="the next call with this id begins with a fresh shell",
    )


def exited(session_id: str, status: int) -> Fault:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return terminated(session_id, f"its shell exited with {code}", exit_code=code)
    reason = f"its shell was ended by {signal.Signals(-code).name}"
    return terminated(session_id, reason, exit_code=128 - code)


def timed_out(command: str, seconds: float) -> Fault:
    """For the call itself; later ones are told that the session was terminated."""
    return Fault(
        "COMMAND_EXECUTION_ERROR",
        f"timeout: the command was ended after {round(seconds * 1000)}ms, and its session with it",
        context={"command": command, "exitCode": TIMED_OUT},
        operation="command.execute",
        suggestion="the next call says once that the session has ended; then it begins anew",
    )


def refused(name: str, command: str) -> Fault:
    """A variable for the call, which no shell can have."""
    return Fault(
        "COMMAND_EXECUTION_ERROR",
        f"env.{name}: in a session, names of variables are letters, digits and underscores",
        context={"command": command},
        operation="command.execute",
    )
