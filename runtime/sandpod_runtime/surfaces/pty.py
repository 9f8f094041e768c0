"""`/ws/pty`: the terminal of a session. It starts where the session is, with what it exports, and ends with
it.
"""

from functools import partial

from aiohttp.web_response import StreamResponse

from sandpod_runtime.environment import Environment
from sandpod_runtime.models.terminals import PtyQuery
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.session.ids import named
from sandpod_runtime.session.sessions import Session, Sessions
from sandpod_runtime.surfaces.terminal_socket import FRAMES, refuse_without_upgrade, refused, served, side
from sandpod_runtime.terminal.launch import DEFAULT_SIZE, Launch
from sandpod_runtime.terminal.pty import Size
from sandpod_runtime.terminal.terminal import Key, Terminal
from sandpod_runtime.terminal.terminals import Terminals
from sandpod_runtime.wire import Request


class PtySurface:
    def __init__(self, *, terminals: Terminals, sessions: Sessions, environment: Environment) -> None:
        self._terminals = terminals
        self._sessions = sessions
        self._environment = environment

    def routes(self) -> Routes:
        return {
            ("GET", "/ws/pty"): Endpoint(
                handler=self._attach,
                tag="terminals",
                summary="WebSocket: attach to the terminal of a session; both are made when needed.",
                query=PtyQuery,
                websocket=FRAMES,
                is_activity=False,
            ),
        }

    async def _attach(self, request: Request) -> StreamResponse:
        refuse_without_upgrade(request)
        query = queried(request, PtyQuery)
        session_id = named(query.session_id)
        if session_id is None:
            return refused("sessionId: say which session\n")
        key = Key(session_id, is_sessions=True)

        async def found_or_made() -> Terminal:
            planned = partial(self._planned, session_id, query)
            return (await self._terminals.get_or_create(key, planned))[0]

        return await served(request, found_or_made)

    async def _planned(self, session_id: str, query: PtyQuery) -> Launch:
        # What is known of it: a command that runs there now is not waited for.
        session = self._sessions.known(session_id) or await self._sessions.use(session_id)
        return Launch(
            environ=session.exported,
            directory=session.directory,
            otherwise=self._environment.directory(),
            shell=query.shell,
            size=Size(
                cols=side(query.cols) or DEFAULT_SIZE.cols,
                rows=side(query.rows) or DEFAULT_SIZE.rows,
            ),
            on_made=partial(self._end_with, session),
        )

    def _end_with(self, session: Session, terminal: Terminal) -> None:
        def end() -> None:
            self._terminals.destroy_soon(terminal.key)

        unsubscribe = session.on_end(end)
        terminal.ended.add_done_callback(lambda _: unsubscribe())
