"""Viewers who do not keep up, programs that do not read, and frames that are too large: all within bounds."""

import asyncio
import base64
import hashlib
import os
import socket
from collections.abc import Callable
from typing import Any

from tests.support.runtime import Runtime, soon
from tests.support.terminal import Viewer

Attach = Callable[..., Viewer]
Post = Callable[..., Any]
Listed = Callable[[], Any]

FIFTY_MB = 50_000_000


class Stalled:
    """A viewer who reads nothing until it is asked to. (aiohttp's client reads ahead by itself.)"""

    def __init__(self, runtime: Runtime, terminal: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", runtime.port))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET /ws/terminal?terminalId={terminal} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        assert self._socket.recv(12) == b"HTTP/1.1 101"

    def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        self._socket.settimeout(20)
        found = bytearray()
        try:
            while data := self._socket.recv(65_536):
                found += data
        except ConnectionResetError:
            pass
        self._socket.close()
        return bytes(found)

    def close(self) -> None:
        self._socket.close()


def close_frame(code: int, reason: str) -> bytes:
    payload = code.to_bytes(2) + reason.encode()
    return bytes((0x88, len(payload))) + payload


async def viewers_of(listed: Listed, terminal: str, count: int) -> None:
    async with asyncio.timeout(30):
        while (await listed())[terminal]["viewers"] != count:  # noqa: ASYNC110 (HTTP has no event for it)
            await asyncio.sleep(0.05)


async def test_a_stalled_viewer_is_cut_off_while_another_receives_everything(
    post: Post, attach: Attach, listed: Listed, runtime: Runtime
) -> None:
    await post("create", id="flood", shell="sh")
    async with attach("flood") as viewer:
        await viewer.run("stty -echo -onlcr; PS1=")
        stalled = Stalled(runtime, "flood")
        await viewers_of(listed, "flood", 2)
        viewer.forget()
        await viewer.type(f"head -c {FIFTY_MB} /dev/zero | tr '\\0' x; echo e''nd\n")
        await viewers_of(listed, "flood", 1)
        assert close_frame(1013, "too slow: the output did not get through; attach again") in stalled.rest()
        await viewer.shows("end", timeout=120)
        assert viewer.output.count(b"x") == FIFTY_MB
        # And it may come back.
        async with attach("flood") as again:
            await again.told("ready")
            assert len(again.output) == 262_144


async def test_who_does_not_read_the_cut_either_is_gone_all_the_same(
    post: Post, attach: Attach, listed: Listed, runtime: Runtime
) -> None:
    await post("create", id="flood", shell="sh")
    before = runtime.descriptors()
    stalled = Stalled(runtime, "flood")
    async with attach("flood") as viewer:
        await viewer.told("ready")
        await viewer.type("head -c 20000000 /dev/zero | tr '\\0' x; echo e''nd\n")
        await viewer.shows("end", timeout=60)
        await viewers_of(listed, "flood", 1)
    await soon(lambda: runtime.descriptors() <= before, timeout=15)
    stalled.close()


async def test_without_viewers_a_program_writes_as_fast_as_it_can(
    post: Post, attach: Attach, runtime: Runtime
) -> None:
    await post("create", id="alone", shell="sh")
    async with attach("alone") as viewer:
        await viewer.told("ready")
        await viewer.type("sleep 0.3; head -c 20000000 /dev/zero | tr '\\0' x; touch written\n")
    await soon((runtime.workspace / "written").exists, timeout=60)


async def test_a_program_waits_for_its_only_viewer_and_not_for_ever(
    post: Post, listed: Listed, runtime: Runtime
) -> None:
    """A large file can be shown over a slow link; a dead link holds nobody up."""
    await post("create", id="lone", shell="sh")
    stalled = Stalled(runtime, "lone")
    await viewers_of(listed, "lone", 1)
    type_in(stalled, "head -c 20000000 /dev/zero | tr '\\0' x; touch shown\n")
    await viewers_of(listed, "lone", 0)
    await soon((runtime.workspace / "shown").exists, timeout=60)
    stalled.close()


def type_in(viewer: Stalled, text: str) -> None:
    data = text.encode()
    # With a mask of zeros.
    viewer._socket.sendall(bytes((0x82, 0x80 | len(data))) + bytes(4) + data)  # pyright: ignore[reportPrivateUsage]


async def test_a_large_paste_arrives_whole(post: Post, attach: Attach) -> None:
    await post("create", id="paste", shell="sh")
    data = b"".join(b"%07d\n" % number for number in range(100_000))
    async with attach("paste") as viewer:
        await viewer.run("stty -echo raw; PS1=")
        # Or the shell, which reads ahead, takes the beginning.
        await viewer.type(f"printf rea''dy.; head -c {len(data)} | sha256sum; stty sane\n")
        await viewer.shows("ready.")
        for start in range(0, len(data), 100_000):
            await viewer.type(data[start : start + 100_000])
        await viewer.shows(hashlib.sha256(data).hexdigest(), timeout=60)


async def test_a_program_that_does_not_read_holds_its_typist_back_and_nobody_else(
    post: Post, attach: Attach, runtime: Runtime
) -> None:
    await post("create", id="deaf", shell="sh")
    await post("create", id="other", shell="sh")
    before = runtime.memory()
    async with attach("deaf") as typist, attach("deaf") as witness, attach("other") as other:
        await typist.run("stty -echo raw; PS1=")
        await typist.type("while sleep 0.2; do printf wi''tness; done\n")
        await witness.shows("witness")

        async def flood() -> None:
            for _ in range(200):
                await typist.type(bytes(500_000))

        flooding = asyncio.create_task(flood())
        await asyncio.wait({flooding}, timeout=2)
        assert not flooding.done()  # 100 MB did not fit
        assert runtime.memory() - before < 30
        witness.forget()
        await witness.shows("witness")
        assert "alive" in await other.run("echo al''ive")
        # The end of the terminal lets them all go.
        await post("destroy", id="deaf")
        assert await witness.closed() == 1000
        await asyncio.wait({flooding}, timeout=10)
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)


async def test_a_frame_of_more_than_a_mebibyte_is_refused(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as viewer, attach(terminal) as other:
        await viewer.told("ready")
        await viewer.socket.send_bytes(bytes((1 << 20) + 1))
        assert await viewer.closed() == 1009
        assert "alive" in await other.run("echo al''ive")


async def test_viewers_who_vanish_leave_nothing(
    post: Post, terminal: str, listed: Listed, runtime: Runtime
) -> None:
    before = runtime.descriptors()
    vanishing = [Stalled(runtime, terminal) for _ in range(10)]
    await viewers_of(listed, terminal, 10)
    for each in vanishing:
        each.close()
    await viewers_of(listed, terminal, 0)
    await soon(lambda: runtime.descriptors() <= before)


async def test_what_is_no_websocket_after_the_upgrade_is_refused(
    terminal: str, listed: Listed, runtime: Runtime
) -> None:
    speaking = Stalled(runtime, terminal)
    speaking._socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)  # pyright: ignore[reportPrivateUsage]
    await viewers_of(listed, terminal, 0)
    assert speaking.rest()


async def test_sockets_that_come_and_go_leak_nothing(terminal: str, attach: Attach, runtime: Runtime) -> None:
    before = runtime.descriptors()
    for _ in range(30):
        async with attach(terminal) as one, attach(terminal) as two:
            await one.told("ready")
            await two.told("ready")
    await soon(lambda: runtime.descriptors() <= before)
