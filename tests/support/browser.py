"""A real browser without a window, Debian's Chromium, spoken to by its DevTools protocol."""

import asyncio
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.cluster import ROOT, Json, run
from tests.support.ingress import DOMAIN, Ingress
from tests.support.waiting import eventually

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--remote-debugging-port=0",
)
_LOG = "chromium.log"


def why_not() -> str:
    """Why there can be none here; empty where there can."""
    return "" if shutil.which("apt-get") else "Chromium comes from Debian's packages, and this is no Debian"


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._session = ""

    async def begin(self) -> None:
        target = await self._send("Target.createTarget", url="about:blank")
        attached = await self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]

    async def open(self, url: str) -> None:
        shown = await self._send("Page.navigate", url=url)
        assert "errorText" not in shown, shown

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        found = await self._send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def shows(self, text: str, *, seconds: float = 60) -> str:
        """The text of the page, once this is a part of it: pages reload by themselves meanwhile."""
        shown = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while text not in shown:
                    # Between two documents there is none.
                    with contextlib.suppress(AssertionError):
                        shown = await self.evaluate("document.body ? document.body.innerText : ''") or ""
                    await asyncio.sleep(0.05)
        assert text in shown, shown
        return shown

    async def _send(self, method: str, **parameters: Any) -> Json:
        number = next(self._numbers)
        message: Json = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message | ({"sessionId": self._session} if self._session else {}))
        while True:
            answer = json.loads(await self._socket.receive_str(timeout=30))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]


@contextlib.asynccontextmanager
async def browser(ingress: Ingress) -> AsyncGenerator[Page]:
    """An empty page of a browser that knows nobody, and for which all previews are behind this ingress."""
    with tempfile.TemporaryDirectory(prefix="sandpod-", ignore_cleanup_errors=True) as folder:
        profile = Path(folder)
        process = await asyncio.to_thread(_begin, profile, ingress)
        try:
            address = await asyncio.to_thread(eventually, lambda: _address(profile, process), timeout=30)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
            ):
                page = Page(socket)
                await page.begin()
                yield page
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)


def _begin(profile: Path, ingress: Ingress) -> "subprocess.Popen[bytes]":
    program = run(ROOT / "hack/tools/chromium.sh", timeout=300).stdout.strip()
    rules = f"MAP *.{DOMAIN} {ingress.address}:{ingress.http}"
    with (profile / _LOG).open("wb") as log:
        return subprocess.Popen(
            [program, *_ARGUMENTS, f"--user-data-dir={profile}", f"--host-resolver-rules={rules}"],
            stdout=log,
            stderr=log,
        )


def _address(profile: Path, process: "subprocess.Popen[bytes]") -> str | None:
    if process.poll() is not None:
        raise RuntimeError(f"Chromium ended: {(profile / _LOG).read_text(errors='replace')}")
    file = profile / "DevToolsActivePort"
    lines = file.read_text().splitlines() if file.exists() else []
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}" if len(lines) == 2 else None
