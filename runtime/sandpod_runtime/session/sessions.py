"""All sessions: one shell for each id, what is remembered of those that have ended, and what was saved."""

import asyncio
import logging
import os
from collections.abc import Mapping

import msgspec

from sandpod_runtime.clock import timestamp
from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.environment import Environment, merged
from sandpod_runtime.errors import Fault
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.session import ends
from sandpod_runtime.session.maker import Maker
from sandpod_runtime.session.session import Session
from sandpod_runtime.session.store import Saved, Store, StoreError
from sandpod_runtime.state import StateDirectory

__all__ = ["Session", "Sessions"]

MOST = 64
# Ends that nobody has been told of yet.
_REMEMBERED = 1024
# A session whose command does not end in this time is saved without what only its shell knows.
_PATIENCE = 3.0
_CHANGED = "all but the directory and the exported variables: the file was changed"
_OTHER_SHELL = "all but the directory and the exported variables: another shell ({}) wrote it"

logger = logging.getLogger(__name__)


class Sessions:
    def __init__(
        self,
        *,
        commands: Commands,
        environment: Environment,
        state: StateDirectory,
        disk: Disk,
        workspace: str,
    ) -> None:
        self._environment = environment
        self._maker = Maker(commands=commands, environment=environment, workspace=workspace)
        self._store = Store(state)
        self._disk = disk
        self._living: dict[str, Session] = {}
        # Of an earlier runtime; each is made again when it is first used. Their scripts stay on the disk.
        self._saved: dict[str, Saved] = {}
        self._ended: dict[str, tuple[Session, Fault]] = {}

    def __len__(self) -> int:
        return len(self._living) + len(self._saved)

    def ids(self) -> list[str]:
        return [*self._living, *self._saved]

    def known(self, session_id: str) -> Session | None:
        return self._living.get(session_id)

    def saved(self, session_id: str) -> Saved | None:
        """One that is there, but has not been used since it was restored."""
        return self._saved.get(session_id)

    def directory(self, session_id: str | None) -> str:
        if session_id is not None:
            if session := self._living.get(session_id):
                return session.directory
            if saved := self._saved.get(session_id):
                return os.fsdecode(saved.directory)
        return self._environment.directory()

    async def use(self, session_id: str) -> Session:
        """The session with this id; it is made when there is none. Raises once when it has ended unseen."""
        if session := self._living.get(session_id):
            return session
        if session_id in self._saved:
            return await self._revived(session_id)
        if ended := self._ended.pop(session_id, None):
            raise ended[1]
        logger.info("a session is made by its first use", extra={"session": session_id})
        return self._make(session_id, environ=self._environment.variables, cwd=None, timeout=None)

    async def create(
        self, session_id: str, *, env: Mapping[str, str | None] | None, cwd: str | None, timeout: float | None
    ) -> Session:
        if session_id in self._living or session_id in self._saved:
            raise Fault(
                "SESSION_ALREADY_EXISTS",
                f"there is a session {session_id} already",
                context={"sessionId": session_id, "containerPlacementId": self.placement},
            )
        self._ended.pop(session_id, None)
        environ = merged(self._environment.variables, env)
        return self._make(session_id, environ=environ, cwd=cwd, timeout=timeout)

    async def delete(self, session_id: str) -> None:
        session = self._living.get(session_id)
        saved = self._saved.pop(session_id, None)
        ended = self._ended.pop(session_id, None)
        if session is not None:
            session.end(ends.deleted(session_id))
            await session.gone()
        elif saved is None and ended is None:
            reason = f"there is no session {session_id}"
            raise Fault("INTERNAL_ERROR", reason, context={"sessionId": session_id, "originalError": reason})
        if session_id not in self._living:
            try:
                # Or a runtime that is killed would bring it back.
                await self._disk.run(self._store.remove, session_id)
            except OSError as error:
                logger.warning("a session's state stays", extra={"reason": str(error)})

    @property
    def persistent(self) -> bool:
        return self._store.persistent

    @property
    def placement(self) -> str | None:
        return self._environment.variables.get("CLOUDFLARE_PLACEMENT_ID")

    async def save_all(self) -> dict[str, list[str]]:
        """Write the states of all sessions; says for each what is lost. Raises Fault."""
        living = [*self._living.values()]
        found = await asyncio.gather(*(self._state_of(session) for session in living))
        states = [saved for saved in found if saved is not None]
        kept = {each.id: each.lost for each in [*self._saved.values(), *states]}
        try:
            for state in states:
                await self._disk.run(self._store.write, state)
            # Nobody has used these since they were restored, and only the files have their scripts.
            for saved in [*self._saved.values()]:
                if not await self._disk.run(self._store.holds, saved.id):
                    saved.lost = [*{*saved.lost, _CHANGED}]
                    await self._disk.run(self._store.write, saved)
            await self._disk.run(self._store.keep_only, kept.keys())
        except OSError as error:
            raise fault_of(error, path=error.filename or "sessions", operation="session.save") from error
        return kept

    async def restore_all(self) -> tuple[list[str], list[str]]:
        """The ids that are there again, and what is wrong with the states that are not. Never fails."""
        try:
            found = await self._disk.run(lambda: [*map(_without_script, self._store.read_all(most=MOST))])
        except OSError as error:
            return [], [os.strerror(error.errno or 0)]
        restored: list[str] = []
        problems: list[str] = []
        for each in found:
            if isinstance(each, str):
                problems.append(each)
            elif each.id not in self._living:
                self._saved[each.id] = each
                self._ended.pop(each.id, None)
                restored.append(each.id)
        if problems:
            logger.warning("sessions could not be restored", extra={"problems": problems})
        return restored, problems

    async def close(self) -> None:
        for session in [*self._living.values()]:
            session.end(ends.stopping(session.id))
        self._maker.close()

    async def _state_of(self, session: Session) -> Saved | None:
        """None when it has ended meanwhile."""
        try:
            snapshot = await session.state(patience=_PATIENCE)
        except Fault as fault:
            logger.warning("a session is not saved", extra={"session": session.id, "reason": fault.message})
            return None
        return Saved(
            id=session.id,
            shell=session.shell,
            directory=os.fsencode(snapshot.directory),
            environ=[os.fsencode(f"{name}={value}") for name, value in snapshot.environ.items()],
            script=snapshot.script,
            lost=snapshot.lost,
            timeout=session.timeout,
            saved_at=timestamp(),
        )

    async def _revived(self, session_id: str) -> Session:
        try:
            saved = await self._disk.run(self._store.read, session_id)
        except (OSError, StoreError) as error:
            logger.warning("a state is lost", extra={"session": session_id, "reason": str(error)})
            saved = self._saved.get(session_id)
            if saved is not None:
                saved.lost.append(_CHANGED)
        if session := self._living.get(session_id):
            return session  # another call was faster
        if saved is None or self._saved.pop(session_id, None) is None:
            return await self.use(session_id)  # it was deleted meanwhile
        pairs = (os.fsdecode(entry).partition("=") for entry in saved.environ)
        session = self._make(
            session_id,
            environ={name: value for name, _, value in pairs},
            cwd=os.fsdecode(saved.directory),
            timeout=saved.timeout,
        )
        session.missing += saved.lost
        if saved.shell != session.shell:
            session.missing.append(_OTHER_SHELL.format(saved.shell))
        elif saved.script:
            await session.restore(saved.script)
        return session

    def _make(
        self,
        session_id: str,
        *,
        environ: dict[str, str],
        cwd: str | None,
        timeout: float | None,
    ) -> Session:
        if len(self) >= MOST:
            raise Fault(
                "RESOURCE_BUSY",
                f"there are {MOST} sessions, which is the limit",
                suggestion="delete one of them first",
            )
        session = self._maker.make(
            session_id,
            environ=environ,
            cwd=cwd,
            timeout=timeout,
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


def _without_script(found: Saved | str) -> Saved | str:
    return found if isinstance(found, str) else msgspec.structs.replace(found, script=b"")
