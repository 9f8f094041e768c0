"""A git server on loopback, as the web speaks it: `git http-backend` behind basic authentication."""

import asyncio
import base64
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

USER = "someone"
PASSWORD = "open-sesame"
_ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "LC_ALL": "C",
}


def git(*arguments: str, directory: Path) -> str:
    """Outside of the runtime, and without this machine's configuration."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=_ENVIRON, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(root: Path, name: str = "project.git") -> Path:
    """A bare one with the branches main (3 commits) and other, and the tag v1."""
    bare = root / name
    git("init", "--quiet", "--bare", "--initial-branch=main", str(bare), directory=root)
    git("config", "uploadpack.allowFilter", "true", directory=bare)
    git("config", "http.receivepack", "true", directory=bare)
    work = root / f"{name}-work"
    git("clone", "--quiet", str(bare), str(work), directory=root)
    git("checkout", "--quiet", "-B", "main", directory=work)
    for number in range(3):
        (work / "file.txt").write_text(f"line {number}\n" * 3)
        git("add", ".", directory=work)
        git("commit", "--quiet", "-m", f"Change {number}\n\nWhy it changed.", directory=work)
    git("tag", "v1", "HEAD~1", directory=work)
    git("branch", "other", "HEAD~2", directory=work)
    git("push", "--quiet", "origin", "main", "other", "v1", directory=work)
    return bare


def names(folder: Path) -> list[str] | None:
    """What a folder holds; None when there is none."""
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else None


class GitServer:
    """`asked` holds the Authorization of every request, by path; `stalled` answers and then says no more."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = ""
        self.asked: list[tuple[str, str | None]] = []
        self.private = False
        self.stalled = asyncio.Event()
        self.stalling = False
        self.redirect_to: str | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization")
        self.asked.append((request.path, given))
        if self.redirect_to is not None:
            raise web.HTTPFound(self.redirect_to + request.path_qs)
        if self.private and given != "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        if self.stalling:
            response = web.StreamResponse(
                headers={"Content-Type": "application/x-git-upload-pack-advertisement"}
            )
            await response.prepare(request)
            self.stalled.set()
            await asyncio.sleep(60)
        return await self._backend(request)

    async def _backend(self, request: web.Request) -> web.Response:
        environ = _ENVIRON | {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": USER,
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        }
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            env=environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate(await request.read())
        head, _, body = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        headers.pop("Content-Length", None)
        return web.Response(status=status, headers=headers, body=body)


@asynccontextmanager
async def serving(root: Path) -> AsyncGenerator[GitServer]:
    server = GitServer(root)
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, auto_decompress=False, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()
