"""A client of one terminal's socket, as a test uses it: keys go in, and it waits for what it wants to see."""

import asyncio
import json
from typing import Any, Self

import aiohttp
from aiohttp import WSMsgType

Json = dict[str, Any]

PROMPT = "what now? "


class Viewer:
    """`output` is all that came in binary frames, `messages` all that came as text."""

    def __init__(self, http: aiohttp.ClientSession, path: str, **options: Any) -> None:
        self._http = http
        self._path = path
        self._options = options
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.output: bytearray = bytearray()
        self.messages: list[Json] = []
        # The order of what came: "bytes", or a text message's type.
        self.kinds: list[str] = []

    async def __aenter__(self) -> Self:
        self.socket: aiohttp.ClientWebSocketResponse = await self._http.ws_connect(
            self._path, **self._options
        )
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()
        if self._reading is not None:
            await self._reading

    @property
    def close_code(self) -> int | None:
        return self.socket.close_code

    async def type(self, text: str | bytes) -> None:
        await self.socket.send_bytes(text.encode() if isinstance(text, str) else text)

    async def control(self, **message: Any) -> None:
        await self.socket.send_json(message)

    async def shows(self, text: str, *, timeout: float = 20) -> str:
        """All output, once `text` is in it."""
        wanted = text.encode()
        seen = 0

        def shown() -> bool:
            nonlocal seen
            # Not from the beginning each time: there may be a lot of it.
            begin, seen = max(0, seen - len(wanted)), len(self.output)
            return self.output.find(wanted, begin) >= 0

        await self._until(shown, f"{text!r} to be shown", timeout)
        return self.output.decode(errors="replace")

    async def told(self, kind: str, *, timeout: float = 20) -> Json:
        """The first message of this type."""
        await self._until(lambda: kind in self.kinds, f"a message {kind}", timeout)
        return next(message for message in self.messages if message["type"] == kind)

    async def closed(self, *, timeout: float = 20) -> int:
        await self._until(lambda: self.socket.closed, "the end", timeout)
        assert self.close_code is not None
        return self.close_code

    def forget(self) -> None:
        self.output.clear()

    async def run(self, line: str, *, timeout: float = 20) -> str:
        """What a shell shows for a line, until it has run; without the replay."""
        await self.told("ready")
        self.forget()
        # What is echoed has quotes where what is printed has none.
        end = " " if line.endswith("&") else "; "
        await self.type(f"{line}{end}printf 'do''ne-%s.' $?\r")
        return await self.shows("done-", timeout=timeout)

    async def prompt(self, keys: str) -> None:
        """Type this to a program that runs in the shell, and wait until the shell is back: what is typed
        while a program leaves the terminal as it found it is lost.
        """
        self.forget()
        await self.type(keys)
        await self.shows(PROMPT)

    async def _read(self) -> None:
        async for message in self.socket:
            if message.type is WSMsgType.BINARY:
                self.output += message.data
                self.kinds.append("bytes")
            elif message.type is WSMsgType.TEXT:
                self.messages.append(json.loads(message.data))
                self.kinds.append(self.messages[-1]["type"])
            self._news.set()
        self._news.set()

    async def _until(self, check: Any, what: str, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not check():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            shown = bytes(self.output[-2000:]).decode(errors="replace")
            raise AssertionError(
                f"waited in vain for {what}; messages {self.messages}, output {shown}"
            ) from None
