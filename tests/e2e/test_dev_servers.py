"""Development servers of others in a sandbox, opened by their preview URLs: what they need beyond pages, such
as hot reload, forms that are guarded against forgery, kernels and terminals behind a WebSocket.
"""

import contextlib
import json
import re
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from tests.support import browser as chromium
from tests.support.ingress import Ingress, Preview
from tests.support.packages import node_modules, site_packages
from tests.support.preview_boxes import opened, start, upload, write
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually

HERE = Path(__file__).parent / "dev_servers"
VITE, NEXT, DJANGO, JUPYTER = 5173, 3001, 8000, 8888
SECRET = "only-for-tests"


def text(path: str) -> str:
    return (HERE / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def box(shared_sandbox: Sandboxes) -> Sandbox:
    ports = [{"port": port} for port in (VITE, NEXT, DJANGO, JUPYTER)]
    return shared_sandbox("box", keepAlive=True, ports=ports).wait()


@pytest.fixture(scope="module")
def vite(box: Sandbox, api: httpx.Client, ingress: Ingress) -> Preview:
    modules = node_modules(HERE / "vite")
    upload(
        api, box, "vite", modules, files={name: text(f"vite/{name}") for name in ("index.html", "main.js")}
    )
    command = f"node node_modules/vite/bin/vite.js --host 0.0.0.0 --port {VITE} --strictPort"
    start(api, box, command, cwd="/workspace/vite")
    return opened(ingress, box, VITE)


async def test_vite_tells_of_a_change_by_its_websocket(
    box: Sandbox, vite: Preview, api: httpx.Client
) -> None:
    with vite.client(Accept="*/*") as client:
        found = re.search(r'wsToken = "([^"]+)"', client.get("/@vite/client").text)
        assert found is not None
        assert "first" in client.get("/main.js").text
    headers = {"Host": vite.host, "Origin": vite.url.rstrip("/")}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(vite.at(f"/?token={found[1]}", scheme="ws"), protocols=("vite-hmr",)) as socket,
    ):
        assert await socket.receive_json(timeout=20) == {"type": "connected"}
        write(api, box, "vite/main.js", text("vite/main.js").replace("first", "second"))
        update = await socket.receive_json(timeout=20)
        assert [each["path"] for each in update["updates"]] == ["/main.js"]
    write(api, box, "vite/main.js", text("vite/main.js"))


@pytest.mark.skipif(bool(chromium.why_not()), reason=chromium.why_not())
async def test_a_browser_shows_a_change_without_loading_the_page_again(
    box: Sandbox, vite: Preview, ingress: Ingress, api: httpx.Client
) -> None:
    async with chromium.browser(ingress) as page:
        await page.open(vite.url)
        await page.shows("the first word")
        loaded = await page.evaluate("window.loads")
        changed = text("vite/main.js").replace("first", "third")
        for attempt in range(20):
            # Vite tells nobody of a change that came before the page's WebSocket.
            write(api, box, "vite/main.js", f"{changed}// {attempt}\n")
            with contextlib.suppress(AssertionError):
                await page.shows("the third word", seconds=3)
                break
        await page.shows("the third word")
        assert await page.evaluate("performance.timeOrigin") == loaded
    write(api, box, "vite/main.js", text("vite/main.js"))


async def test_next_tells_of_a_change_by_its_websocket(
    box: Sandbox, api: httpx.Client, ingress: Ingress
) -> None:
    page = "next/pages/index.js"
    files = {name.removeprefix("next/"): text(name) for name in ("next/next.config.js", page)}
    upload(api, box, "next", node_modules(HERE / "next"), files=files)
    command = f"node node_modules/next/dist/bin/next dev --hostname 0.0.0.0 --port {NEXT}"
    start(api, box, command, cwd="/workspace/next", env={"NEXT_TELEMETRY_DISABLED": "1"})
    preview = opened(ingress, box, NEXT)
    with preview.client() as client:
        assert "the first word" in client.get("/").text
        for origin, status in ((preview.url.rstrip("/"), 200), ("https://evil.example", 403)):
            script = client.get("/_next/static/chunks/main.js", headers={"Origin": origin})
            assert script.status_code == status

    async def told(socket: aiohttp.ClientWebSocketResponse, action: str) -> dict[str, Any]:
        while (message := await socket.receive_json(timeout=60)).get("action") != action:
            pass
        return message

    headers = {"Host": preview.host, "Origin": preview.url.rstrip("/")}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(preview.at("/_next/webpack-hmr", scheme="ws")) as socket,
    ):
        before = await told(socket, "sync")
        write(api, box, page, text(page).replace("first", "second"))
        assert (await told(socket, "built"))["hash"] != before["hash"]
        async with session.get(preview.at("/")) as answer:
            assert "the second word" in await answer.text()


def test_django_takes_a_form_and_reloads_itself(box: Sandbox, api: httpx.Client, ingress: Ingress) -> None:
    packages = site_packages(HERE / "django/requirements.lock")
    upload(api, box, "django", packages, files={"page.py": text("django/page.py")})
    command = f"python3 page.py runserver 0.0.0.0:{DJANGO}"
    start(api, box, command, cwd="/workspace/django", env={"PYTHONPATH": "/workspace/django/site"})
    preview = opened(ingress, box, DJANGO)
    origin = preview.url.rstrip("/")
    with preview.client(Origin=origin, Referer=preview.url) as client:
        shown = client.get("/").text
        assert f"hello from Django at {preview.url}" in shown
        token, cookie = shown.partition("token=")[2], client.cookies["csrftoken"]
        form = {"text": "a word", "csrfmiddlewaretoken": token}
        answer = client.post("/", data=form, headers={"Cookie": f"csrftoken={cookie}"})
        assert (answer.status_code, answer.text) == (200, "posted: a word")
        forged = {"Cookie": f"csrftoken={cookie}", "Origin": "https://evil.example"}
        assert client.post("/", data=form, headers=forged).status_code == 403

        write(api, box, "django/page.py", text("django/page.py").replace("hello from", "again from"))
        eventually(lambda: "again from Django" in client.get("/").text, timeout=30)


@pytest.fixture(scope="module")
def jupyter(box: Sandbox, api: httpx.Client, ingress: Ingress) -> Preview:
    packages = site_packages(HERE / "jupyter/requirements.lock")
    upload(api, box, "jupyter", packages, files={})
    options = f"--ip=0.0.0.0 --port={JUPYTER} --no-browser --ServerApp.allow_remote_access=True"
    site = "/workspace/jupyter/site"
    start(
        api,
        box,
        f"python3 -m jupyter_server {options} --IdentityProvider.token={SECRET}",
        cwd="/workspace/jupyter",
        env={
            "PYTHONPATH": site,
            "JUPYTER_PATH": f"{site}/share/jupyter",
            "JUPYTER_CONFIG_PATH": f"{site}/etc/jupyter",
        },
    )
    return opened(ingress, box, JUPYTER, path="/api")


@contextlib.asynccontextmanager
async def logged_in(jupyter: Preview) -> AsyncGenerator[aiohttp.ClientSession]:
    origin, token = jupyter.url.rstrip("/"), f"token {SECRET}"
    headers = {"Host": jupyter.host, "Origin": origin, "Authorization": token}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield session


async def test_a_kernel_of_jupyter_computes(jupyter: Preview) -> None:
    async with logged_in(jupyter) as session:
        async with session.post(jupyter.at("/api/kernels"), json={"name": "python3"}) as answer:
            assert answer.status == 201, await answer.text()
            kernel = (await answer.json())["id"]
        path = f"/api/kernels/{kernel}/channels?session_id={uuid.uuid4().hex}"
        async with session.ws_connect(jupyter.at(path, scheme="ws")) as socket:
            await socket.send_json(execute("6 * 7"))
            while True:
                message = json.loads(await socket.receive_str(timeout=60))
                if message["msg_type"] == "execute_result":
                    break
        assert message["content"]["data"]["text/plain"] == "42"
        async with session.delete(jupyter.at(f"/api/kernels/{kernel}")) as answer:
            assert answer.status == 204


async def test_a_terminal_of_jupyter_runs_a_shell_until_it_exits(jupyter: Preview) -> None:
    async with logged_in(jupyter) as session:
        async with session.post(jupyter.at("/api/terminals")) as answer:
            assert answer.status == 200, await answer.text()
            name = (await answer.json())["name"]
        path = jupyter.at(f"/terminals/websocket/{name}", scheme="ws")
        async with session.ws_connect(path) as socket:
            assert await socket.receive_json(timeout=60) == ["setup", {}]
            await socket.send_json(["set_size", 31, 97])
            await socket.send_json(["stdin", "stty size; exit\r"])
            shown = ""
            while (message := await socket.receive_json(timeout=60))[0] == "stdout":
                shown += message[1]
            assert "31 97" in shown
            assert message == ["disconnect", 1]
            assert (await socket.receive(timeout=60)).type is aiohttp.WSMsgType.CLOSE


def execute(code: str) -> dict[str, object]:
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "username": "",
        "session": uuid.uuid4().hex,
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": False, "stop_on_error": True}
    return {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
