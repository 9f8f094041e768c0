"""gRPC-web through an ingress controller: streams of a real server arrive message by message."""

import base64
import os
import struct
import subprocess
import sys
from pathlib import Path

import aiohttp
import httpx
import pytest

from tests.support.ingress import Ingress, Preview
from tests.support.packages import site_packages
from tests.support.preview_boxes import PORT, opened, start, upload
from tests.support.sandboxes import Sandboxes

HERE = Path(__file__).parent / "dev_servers/grpc_web"
LOCK = HERE / "requirements.lock"
TEXT = "application/grpc-web-text"
MESSAGE, TRAILERS = 0, 0x80


@pytest.fixture(scope="module")
def preview(shared_sandbox: Sandboxes, api: httpx.Client, ingress: Ingress) -> Preview:
    box = shared_sandbox("box", keepAlive=True, ports=[{"port": PORT}]).wait()
    files = {"server.py": (HERE / "server.py").read_text(encoding="utf-8")}
    upload(api, box, "grpc", site_packages(LOCK), files=files)
    environ = {"PYTHONPATH": "/workspace/grpc/site"}
    start(api, box, f"python3 server.py {PORT}", cwd="/workspace/grpc", env=environ)
    return opened(ingress, box)


def test_a_client_gets_each_message_of_a_stream_before_the_next_is_made(preview: Preview) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    done = subprocess.run(
        [sys.executable, HERE / "client.py", preview.at("/"), preview.host],
        env={**os.environ, "PYTHONPATH": str(site_packages(LOCK, python=version))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        "hello client 12",
        "first 5",
        f"{'x' * 20} 100000",
        "[('grpc-status', '0')]",
        "StatusCode.PERMISSION_DENIED not for anybody",
    ], done.stderr


async def test_the_same_in_base64_as_older_browsers_ask_for_it(preview: Preview) -> None:
    headers = {"Host": preview.host, "Content-Type": TEXT, "Accept": TEXT}
    timeout, service = aiohttp.ClientTimeout(total=60), preview.at("/sandpod.Words")
    async with (
        aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
        session.post(f"{service}/Listen", data=base64.b64encode(framed(MESSAGE, "you"))) as stream,
    ):
        assert stream.content_type == TEXT
        for word, then in (("hello you", "first"), ("first", "end")):
            assert await next_of(stream, len(word)) == framed(MESSAGE, word)
            async with session.post(f"{service}/Tell", data=base64.b64encode(framed(MESSAGE, then))) as told:
                assert await next_of(told, 4) == framed(MESSAGE, "told")
        assert await next_of(stream, 16) == framed(TRAILERS, "grpc-status: 0\r\n")
        assert await stream.read() == b""


def framed(kind: int, text: str) -> bytes:
    return struct.pack(">BI", kind, len(text)) + text.encode()


async def next_of(stream: aiohttp.ClientResponse, length: int) -> bytes:
    """Each message is base64 of its own, padded to groups of four for three."""
    return base64.b64decode(await stream.content.readexactly((5 + length + 2) // 3 * 4))
