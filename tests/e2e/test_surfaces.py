"""What a sandbox offers besides commands, through the Kubernetes API, in our image and in one with nothing
but busybox: there the runtime brings all that its own surfaces need.
"""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Callable

import aiohttp
import httpx
import pytest

from tests.support.cluster import Json, api_server, proxy_path
from tests.support.sandboxes import Sandbox, Sandboxes

Call = Callable[..., httpx.Response]


@pytest.fixture(scope="module", params=["ours", "busybox"])
def any_box(
    request: pytest.FixtureRequest, box: Sandbox, shared_sandbox: Sandboxes, images: dict[str, str]
) -> Sandbox:
    """A sandbox of each kind of image."""
    if request.param == "ours":
        return box
    return shared_sandbox("busybox", image=images["busybox"]).wait()


@pytest.fixture
def call(api: httpx.Client, any_box: Sandbox) -> Call:
    """`call("POST", "api/read", json={…})`, at the sandbox's runtime."""

    def send(method: str, path: str, *, status: int = 200, **options: object) -> httpx.Response:
        where = proxy_path(namespace=any_box.namespace, name=any_box.name, path=path)
        answer = api.request(method, where, **options)  # pyright: ignore[reportArgumentType] (httpx's own)
        assert answer.status_code == status, answer.text
        return answer

    return send


def execute(call: Call, command: str, **fields: str) -> str:
    return call("POST", "api/execute", json={"command": command, **fields}).json()["stdout"]


def test_a_session_keeps_its_state(call: Call) -> None:
    call("POST", "api/session/create", json={"id": "e2e", "env": {"GREETING": "hello"}})
    execute(call, "cd /dev; greet() { echo $GREETING $1; }", sessionId="e2e")
    assert execute(call, "pwd; greet you", sessionId="e2e") == "/dev\nhello you\n"
    call("POST", "api/session/delete", json={"sessionId": "e2e"})


def test_a_process_runs_is_read_and_is_killed(call: Call) -> None:
    command = "echo started; while :; do sleep 1; done"
    call("POST", "api/process/start", json={"command": command, "processId": "server"})
    call("POST", "api/process/server/wait", json={"for": "log", "text": "started", "timeoutMs": 10_000})
    assert call("GET", "api/process/server/logs").json()["stdout"] == "started\n"
    call("DELETE", "api/process/server")
    assert call("GET", "api/process/server").json()["process"]["status"] == "killed"


async def test_a_terminal_is_typed_into(any_box: Sandbox, call: Call) -> None:
    call("POST", "api/terminal/create", json={"id": "screen", "cols": 91, "rows": 17})
    server, trust = api_server()
    path = proxy_path(namespace=any_box.namespace, name=any_box.name, path="ws/terminal?terminalId=screen")
    async with (
        aiohttp.ClientSession(server) as session,
        session.ws_connect(path, ssl=trust) as socket,
    ):
        await socket.send_bytes(b"echo $((41 + 1)) in $(stty size)\r")
        shown = b""
        while b"42 in 17 91" not in shown:
            message = await socket.receive(timeout=20)
            assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), (message, shown)
            if message.type is aiohttp.WSMsgType.BINARY:
                shown += message.data
    call("POST", "api/terminal/destroy", json={"id": "screen"})


def test_a_large_file_goes_up_and_comes_down_as_it_was(call: Call) -> None:
    content = hashlib.sha256(b"seed").digest() * (1 << 18)
    digest = hashlib.sha256(content).hexdigest()
    call("PUT", f"api/files/raw?path=large&sha256={digest}", content=content)
    assert call("GET", "api/files/raw?path=large").content == content
    part = call("GET", "api/files/raw?path=large", status=206, headers={"Range": "bytes=32-63"})
    assert part.content == content[32:64]
    call("POST", "api/delete", json={"path": "large"})


def test_a_directory_travels_as_an_archive(call: Call) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("deep/er/file.txt")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"hello"))
    call("PUT", "api/files/archive?path=unpacked", content=packed.getvalue())
    assert call("POST", "api/read", json={"path": "unpacked/deep/er/file.txt"}).json()["content"] == "hello"
    back = call("GET", "api/files/archive?path=unpacked&format=tar.gz").content
    with tarfile.open(fileobj=io.BytesIO(back)) as archive:
        assert any(name.endswith("deep/er/file.txt") for name in archive.getnames())
    call("POST", "api/delete", json={"path": "unpacked", "recursive": True})


def test_text_is_searched_without_any_program_of_the_image(call: Call) -> None:
    call("POST", "api/write", json={"path": "searched/a.txt", "content": "one\nneedle 7\nthree\n"})
    found = call("POST", "api/files/grep", json={"path": "searched", "pattern": r"needle \d"}).json()
    assert "needle 7" in json.dumps(found)
    call("POST", "api/delete", json={"path": "searched", "recursive": True})


def test_a_change_is_watched(api: httpx.Client, any_box: Sandbox, call: Call) -> None:
    call("POST", "api/mkdir", json={"path": "watched"})
    where = proxy_path(namespace=any_box.namespace, name=any_box.name, path="api/watch")
    with api.stream("POST", where, json={"path": "/workspace/watched"}) as stream:
        events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(events)["type"] == "watching"
        call("POST", "api/write", json={"path": "watched/new.txt", "content": "x"})
        seen: Json = next(event for event in events if event.get("path", "").endswith("/new.txt"))
        assert seen["type"] == "event"
    call("POST", "api/delete", json={"path": "watched", "recursive": True})


def test_the_sandbox_describes_itself(call: Call) -> None:
    about = call("GET", "api/system").json()
    assert about["success"]
    ports = call("GET", "api/ports").json()
    assert ports["success"]
    assert call("GET", "openapi.json").json()["openapi"].startswith("3.1")
    assert b"sandpod_runtime" in call("GET", "metrics").content


def test_variables_are_set_for_all_that_comes(call: Call) -> None:
    call("POST", "api/environment", json={"set": {"TEAM": "blue"}})
    assert execute(call, "echo $TEAM") == "blue\n"
    call("POST", "api/environment", json={"unset": ["TEAM"]})
    assert execute(call, 'echo "[$TEAM]"') == "[]\n"


def test_who_may_run_commands_may_not_put_the_sandbox_to_sleep_at_the_runtime(call: Call) -> None:
    refused = call("POST", "api/lifecycle/sleep", status=404, json={}).text
    assert "to put the sandbox to sleep, POST to its sleep" in refused
    assert call("GET", "api/lifecycle").json()["bound"] is True


def test_a_repository_is_cloned_in_our_image(box: Sandbox, api: httpx.Client) -> None:
    box.output("git init -q -b trunk /tmp/origin")
    box.output("git -C /tmp/origin -c user.name=n -c user.email=e@x commit -q --allow-empty -m one")
    where = proxy_path(namespace=box.namespace, name=box.name, path="api/git/checkout")
    body = {"repoUrl": "/tmp/origin", "targetDir": f"/tmp/clone-{time.monotonic_ns()}"}
    answer = api.post(where, json=body)
    assert answer.json().get("branch") == "trunk", answer.text
