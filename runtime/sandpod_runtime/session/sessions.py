"""All sessions: one shell for each id, and what is remembered of those that have ended."""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from sandpod_runtime.environment import Environment, merged
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.process import shell
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import SpawnError
from sandpod_runtime.session.channel import private_place
from sandpod_runtime.session.dialect import Bash, Posix
from sandpod_runtime.session.session import Session

__all__ = ["Session", "Sessions"]

MOST = 64
# Ends that nobody has been told of yet.
_REMEMBERED = 1024


class Sessions:
    def __init__(self, *, commands: Commands, environment: Environment, workspace: str) -> None:
        self._commands = commands
        self._environment = environment
        self._workspace = workspace
        self._living: dict[str, Session] = {}
        self._ended: dict[str, tuple[Session, Fault]] = {}
        self._place: str | None = None
        self._made = 0

    def __len__(self) -> int:
        return len(self._living)

    def ids(self) -> list[str]:
        return [*self._living]

    def known(self, session_id: str) -> Session | None:
        return self._living.get(session_id)

    def directory(self, session_id: str | None) -> str:
        session = None if session_id is None else self._living.get(session_id)
        return self._environment.directory() if session is None else session.directory

    async def use(self, session_id: str) -> Session:
        """The session with this id; it is made when there is none. Raises once when it has ended unseen."""
        if session := self._living.get(session_id):
            return session
        if ended := self._ended.pop(session_id, None):
            raise ended[1]
        return self._make(session_id, env=None, cwd=None, timeout=None)

    async def create(
        self, session_id: str, *, env: Mapping[str, str | None] | None, cwd: str | None, timeout: float | None
    ) -> Session:
        if session_id in self._living:
            raise Fault(
                "SESSION_ALREADY_EXISTS",
                f"there is a session {session_id} already",
                context={"sessionId": session_id, "containerPlacementId": self.placement},
            )
        self._ended.pop(session_id, None)
        return self._make(session_id, env=env, cwd=cwd, timeout=timeout)

    def delete(self, session_id: str) -> None:
        if session := self._living.get(session_id):
            session.delete()
        elif self._ended.pop(session_id, None) is None:
            reason = f"there is no session {session_id}"
            raise Fault("INTERNAL_ERROR", reason, context={"sessionId": session_id, "originalError": reason})

    @property
    def placement(self) -> str | None:
        return self._environment.variables.get("CLOUDFLARE_PLACEMENT_ID")

    def close(self) -> None:
        for session in [*self._living.values()]:
            session.delete()
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)

    def _make(
        self, session_id: str, *, env: Mapping[str, str | None] | None, cwd: str | None, timeout: float | None
    ) -> Session:
        if len(self._living) >= MOST:
            raise Fault(
                "RESOURCE_BUSY",
                f"there are {MOST} sessions, which is the limit",
                suggestion="delete one of them first",
            )
        environ = merged(self._environment.variables, env)
        found = shell.find(search=environ.get("PATH", ""))
        if found is None:
            raise Fault(
                "INTERNAL_ERROR", "this image has no shell (bash, sh or busybox): it can have no session"
            )
        trouble: Exception | None = None
        for directory in (cwd or self._environment.directory(), environ["HOME"], "/"):
            try:
                return self._started(session_id, found, environ=environ, directory=directory, timeout=timeout)
            except SpawnError as error:
                if error.too_large:
                    raise invalid("env", str(error)) from error
                trouble = error
            except OSError as error:
                trouble = error
                break
        raise Fault("INTERNAL_ERROR", f"no shell could be started: {trouble}") from trouble

    def _started(
        self,
        session_id: str,
        found: list[str],
        *,
        environ: dict[str, str],
        directory: str,
        timeout: float | None,
    ) -> Session:
        if self._place is None or not Path(self._place).is_dir():
            self._place = private_place(others=(self._workspace,))
        self._made += 1
        session = Session(
            session_id=session_id,
            shell=found,
            dialect=Bash() if found[1] == "bash" else Posix(),
            environ=environ,
            directory=directory,
            timeout=self._default_timeout() if timeout is None else timeout or None,
            place=f"{self._place}/{self._made}",
            environment=self._environment,
            commands=self._commands,
            on_over=self._over,
            on_told=self._told,
        )
        self._living[session_id] = session
        return session

    def _over(self, session: Session, fault: Fault) -> None:
        if self._living.get(session.id) is session:
            del self._living[session.id]
            if fault.code == "SESSION_TERMINATED":
                while len(self._ended) >= _REMEMBERED:
                    del self._ended[next(iter(self._ended))]
                self._ended[session.id] = (session, fault)

    def _told(self, session: Session) -> None:
        ended = self._ended.get(session.id)
        if ended is not None and ended[0] is session:
            del self._ended[session.id]

    def _default_timeout(self) -> float | None:
        with contextlib.suppress(ValueError):
            return float(self._environment.variables.get("COMMAND_TIMEOUT_MS", "")) / 1000 or None
        return None
