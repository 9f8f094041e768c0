"""Making sessions: which shell there is, where it starts, and where its FIFOs lie."""

import os
from collections.abc import Callable

from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.process import shell
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import SpawnError
from sandpod_runtime.session.dialect import Bash, Posix
from sandpod_runtime.session.place import PrivatePlace
from sandpod_runtime.session.session import Session

_TIMEOUT_VARIABLE = "COMMAND_TIMEOUT_MS"


class Maker:
    def __init__(self, *, commands: Commands, environment: Environment, workspace: str) -> None:
        self._commands = commands
        self._environment = environment
        self._workspace = workspace
        self._place: PrivatePlace | None = None
        self._made = 0

    def make(
        self,
        session_id: str,
        *,
        environ: dict[str, str],
        cwd: str | None,
        timeout: float | None,
        on_over: Callable[[Session, Fault], None],
        on_told: Callable[[Session], None],
    ) -> Session:
        """Raises Fault."""
        found = shell.find(search=environ.get("PATH", ""))
        if found is None:
            raise Fault(
                "INTERNAL_ERROR", "this image has no shell (bash, sh or busybox): it can have no session"
            )
        default = self._environment.directory()
        wanted = (cwd or default, environ.get("HOME", default), default)
        try:
            return Session(
                session_id=session_id,
                shell=found,
                dialect=Bash() if found[1] == "bash" else Posix(),
                environ=environ,
                directory=next((each for each in wanted if _is_enterable(each)), "/"),
                timeout=self._default_timeout() if timeout is None else timeout or None,
                place=self._fresh_place(),
                environment=self._environment,
                commands=self._commands,
                on_over=on_over,
                on_told=on_told,
            )
        except SpawnError as error:
            if error.too_large:
                raise invalid("env", str(error)) from error
            raise Fault("INTERNAL_ERROR", f"no shell could be started: {error}") from error
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise Fault("INTERNAL_ERROR", f"no shell could be started: {reason}") from error

    def close(self) -> None:
        if self._place is not None:
            self._place.close()
            self._place = None

    def _fresh_place(self) -> str:
        if self._place is not None and not self._place.is_there:
            try:
                self._place.renew()
            except OSError:
                self.close()
        if self._place is None:
            self._place = PrivatePlace(others=(self._workspace,))
        self._made += 1
        return f"{self._place.path}/{self._made}"

    def _default_timeout(self) -> float | None:
        given = self._environment.variables.get(_TIMEOUT_VARIABLE, "")
        return int(given) / 1000 or None if given.isascii() and given.isdecimal() else None


def _is_enterable(path: str) -> bool:
    return os.path.isdir(path) and os.access(path, os.X_OK)  # noqa: PTH112 (Path.is_dir raises for some names)
