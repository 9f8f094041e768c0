"""/api/watch on a real file system: what happens is told, once the stream says that it watches."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import TERMINATED, Runtime, soon

Json = dict[str, Any]


class Events:
    """The events of one stream, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._lines = self._read(response)
        self.seen: list[Json] = []

    async def next(self) -> Json:
        async with asyncio.timeout(10):
            self.seen.append(await anext(self._lines))
        return self.seen[-1]

    async def until(self, kind: str, path: Path, *, is_directory: bool = False) -> Json:
        """The first one like this; those before it are in `seen`."""
        while True:
            event = await self.next()
            assert event["type"] == "event", event
            if (event["eventType"], event["path"], event["isDirectory"]) == (kind, str(path), is_directory):
                return event

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(each["eventType"], Path(each["path"]).name) for each in self.seen if each["type"] == "event"]

    @staticmethod
    async def _read(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
        async for line in response.content:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


@pytest.fixture
def place(runtime: Runtime) -> Iterator[Path]:
    place = runtime.workspace / "watched"
    place.mkdir()
    yield place
    shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def watched(http: aiohttp.ClientSession, path: Path | str, **fields: Any) -> AsyncGenerator[Events]:
    async with http.post("/api/watch", json={"path": str(path), **fields}) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream"
        events = Events(response)
        first = await events.next()
        assert first == {"type": "watching", "path": first["path"], "watchId": first["watchId"]}
        yield events


async def refused(http: aiohttp.ClientSession, status: int, code: str, **fields: Any) -> Json:
    for path in ("/api/watch", "/api/watch/check"):
        async with http.post(path, json=fields) as response:
            body = await response.json()
            assert (response.status, body["code"]) == (status, code), body
    return body


async def test_a_file_made_right_after_watching_is_told(http: aiohttp.ClientSession, place: Path) -> None:
    async with watched(http, place) as events:
        (place / "x.txt").write_text("hello")
        found = await events.until("create", place / "x.txt")
        assert len(found["timestamp"]) == 24
        await events.until("modify", place / "x.txt")
        (place / "x.txt").rename(place / "y.txt")
        await events.until("move_from", place / "x.txt")
        await events.until("move_to", place / "y.txt")
        (place / "y.txt").unlink()
        await events.until("delete", place / "y.txt")


async def test_attributes_are_told_when_asked_for(http: aiohttp.ClientSession, place: Path) -> None:
    (place / "x").touch()
    async with watched(http, place, events=["attrib", "delete"]) as events:
        (place / "x").chmod(0o600)
        await events.until("attrib", place / "x")
        (place / "new").touch()
        (place / "x").unlink()
        await events.until("delete", place / "x")
    assert {kind for kind, _ in events.changes} == {"attrib", "delete"}


async def test_what_is_in_a_new_directory_is_told_however_early_it_came(
    http: aiohttp.ClientSession, place: Path
) -> None:
    async with watched(http, place) as events:
        for number in range(20):
            deep = place / f"d{number}" / "a" / "b"
            deep.mkdir(parents=True)
            (deep / "early").touch()
            await events.until("create", deep / "early")
            (deep / "late").touch()
            await events.until("create", deep / "late")


async def test_a_directory_keeps_its_watch_when_it_is_renamed(
    http: aiohttp.ClientSession, place: Path
) -> None:
    (place / "old" / "deep").mkdir(parents=True)
    async with watched(http, place) as events:
        (place / "old").rename(place / "new")
        await events.until("move_from", place / "old", is_directory=True)
        await events.until("move_to", place / "new", is_directory=True)
        (place / "new" / "deep" / "x").touch()
        await events.until("create", place / "new" / "deep" / "x")
        (place / "old").mkdir()
        (place / "old" / "y").touch()
        await events.until("create", place / "old" / "y")


async def test_directories_may_come_from_and_go_elsewhere(
    http: aiohttp.ClientSession, runtime: Runtime, place: Path, tmp_path: Path
) -> None:
    outside = runtime.workspace / "outside"
    (outside / "a").mkdir(parents=True)
    (outside / "a" / "x").touch()
    async with watched(http, place) as events:
        (outside / "a").rename(place / "a")
        await events.until("move_to", place / "a", is_directory=True)
        await events.until("create", place / "a" / "x")
        (place / "a" / "y").touch()
        await events.until("create", place / "a" / "y")
        (place / "a").rename(outside / "a")
        await events.until("move_from", place / "a", is_directory=True)
        await check(http, place)  # by now the runtime knows of it
        (outside / "a" / "unseen").touch()
        (place / "end").touch()
        await events.until("create", place / "end")
    assert ("create", "unseen") not in events.changes
    shutil.rmtree(outside)


async def test_a_flat_watch_does_not_look_below(http: aiohttp.ClientSession, place: Path) -> None:
    (place / "below").mkdir()
    async with watched(http, place, recursive=False) as events:
        (place / "below" / "x").touch()
        (place / "end").touch()
        await events.until("create", place / "end")
    assert ("create", "x") not in events.changes


async def test_patterns_choose_what_is_told(http: aiohttp.ClientSession, place: Path) -> None:
    (place / ".git").mkdir()
    async with (
        watched(http, place) as usual,
        watched(http, place, include=["*.py"]) as included,
        watched(http, place, exclude=["*.py", "skip"]) as excluded,
    ):
        (place / ".git" / "x.py").touch()
        (place / "skip").mkdir()
        (place / "skip" / "inner.txt").touch()
        for name in ("a.py", "b.txt", "end.py", "end.txt"):
            (place / name).touch()
        await usual.until("create", place / "end.txt")
        await included.until("create", place / "end.py")
        await excluded.until("create", place / "end.txt")
    assert usual.changes == [
        ("create", name) for name in ("skip", "inner.txt", "a.py", "b.txt", "end.py", "end.txt")
    ]
    assert included.changes == [("create", name) for name in ("x.py", "a.py", "end.py")]
    assert ("create", "x.py") not in excluded.changes
    assert [name for kind, name in excluded.changes if kind == "create"] == ["b.txt", "end.txt"]


async def test_equal_changes_are_told_once(http: aiohttp.ClientSession, place: Path) -> None:
    file = place / "x"
    file.touch()
    async with watched(http, place) as events:
        with file.open("a") as out:
            for _ in range(500):
                out.write("line\n")
                out.flush()
        (place / "end").touch()
        await events.until("create", place / "end")
    assert events.changes.count(("modify", "x")) < 50


async def test_names_may_be_anything(http: aiohttp.ClientSession, place: Path) -> None:
    async with watched(http, place) as events:
        for name in ("a|b", "two\nlines", "ä €", 'quote"'):
            (place / name).touch()
            await events.until("create", place / name)
        (place / "not-utf8-\udcff").touch()
        await events.until("create", place / "not-utf8-\N{REPLACEMENT CHARACTER}")


async def test_many_changes_at_once_are_all_told(http: aiohttp.ClientSession, place: Path) -> None:
    async with watched(http, place, events=["create"]) as events:
        for number in range(3000):
            (place / str(number)).touch()
        await events.until("create", place / "2999")
    assert events.changes == [("create", str(number)) for number in range(3000)]


async def test_a_watched_file_may_be_replaced(http: aiohttp.ClientSession, place: Path) -> None:
    file = place / "settings.json"
    file.write_text("1")
    async with watched(http, file) as events:
        (place / "settings.json.tmp").write_text("2")
        (place / "settings.json.tmp").rename(file)
        await events.until("move_to", file)
        file.unlink()
        await events.until("delete", file)
    assert {name for _, name in events.changes} == {"settings.json"}


@pytest.mark.parametrize("how", ["deleted", "moved", "moved with what is above"])
async def test_the_stream_stops_when_what_is_watched_is_gone(
    http: aiohttp.ClientSession, place: Path, how: str
) -> None:
    root = place / "above" / "root"
    root.mkdir(parents=True)
    async with watched(http, root) as events:
        (root / "last").touch()
        if how == "deleted":
            shutil.rmtree(root)
        elif how == "moved":
            root.rename(place / "elsewhere")
        else:
            (place / "above").rename(place / "elsewhere")
        await events.until("create", root / "last")
        while (event := await events.next())["type"] == "event":
            pass
        assert event["type"] == "stopped"
        assert "moved" in event["reason"] if how != "deleted" else "deleted" in event["reason"]
    await refused(http, 404, "FILE_NOT_FOUND", path=str(root))


async def test_the_stream_stops_when_the_runtime_does(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http, watched(http, runtime.workspace) as events:
        stopping = asyncio.create_task(asyncio.to_thread(runtime.stop))
        assert (await events.next())["type"] == "stopped"
        assert await stopping == TERMINATED


async def test_links_are_not_followed(http: aiohttp.ClientSession, place: Path, tmp_path: Path) -> None:
    (place / "link").symlink_to(tmp_path)
    (place / "loop").symlink_to(place)
    async with watched(http, place) as events:
        (tmp_path / "unseen").touch()
        (place / "end").touch()
        await events.until("create", place / "end")
    assert ("create", "unseen") not in events.changes


async def test_equal_watches_are_one(http: aiohttp.ClientSession, place: Path) -> None:
    async with (
        watched(http, place, exclude=["a", "b"]) as one,
        watched(http, "watched/", exclude=["b", "a", "b"]) as same,
        watched(http, place, exclude=["a"]) as other,
    ):
        assert one.seen[0] == same.seen[0]
        assert one.seen[0]["watchId"] != other.seen[0]["watchId"]
        (place / "x").touch()
        for events in (one, same, other):
            await events.until("create", place / "x")


async def test_a_client_that_leaves_frees_the_watch(
    http: aiohttp.ClientSession, runtime: Runtime, place: Path
) -> None:
    before = runtime.descriptors()
    ids: set[str] = set()
    for _ in range(3):
        async with watched(http, place) as events:
            ids.add(events.seen[0]["watchId"])
        await soon(lambda: runtime.descriptors() <= before)
    assert len(ids) == 3


async def test_too_many_watches_are_refused_by_name(http: aiohttp.ClientSession, place: Path) -> None:
    async with aiohttp.ClientSession(http._base_url, connector=aiohttp.TCPConnector(limit=0)) as many:  # pyright: ignore[reportPrivateUsage]
        streams = [
            await many.post("/api/watch", json={"path": str(place), "exclude": [f"x{number}"]})
            for number in range(32)
        ]
        try:
            assert {each.status for each in streams} == {200}
            body = await refused(many, 409, "RESOURCE_BUSY", path=str(place))
            assert "32 watches" in body["message"]
        finally:
            for each in streams:
                each.close()


async def check(http: aiohttp.ClientSession, path: Path, since: str | None = None, **fields: Any) -> Json:
    body = {"path": str(path), **({"since": since} if since else {}), **fields}
    async with http.post("/api/watch/check", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_polling_tells_whether_anything_changed(http: aiohttp.ClientSession, place: Path) -> None:
    first = await check(http, place, exclude=["polled"])
    assert first["status"] == "unchanged"
    assert first["version"].startswith("watch-")
    assert first["version"].endswith(":0")
    assert (await check(http, place, first["version"], exclude=["polled"]))["status"] == "unchanged"
    for number in range(50):
        (place / str(number)).touch()
        second = await check(http, place, first["version"], exclude=["polled"])
        assert second["status"] == "changed", "what happened before a check is seen by it"
        first = second
    lost = await check(http, place, "watch-99-1900000000000:7", exclude=["polled"])
    assert (lost["status"], lost["reason"]) == ("resync", "restarted")
    new = await check(http, place, first["version"], exclude=["other"])
    assert (new["status"], new["reason"]) == ("resync", "expired")
    for since in ("", "nonsense", "watch-1-1:x", "watch-1-1:" + "9" * 5000, first["version"] + "0"):
        async with http.post(
            "/api/watch/check", json={"path": str(place), "exclude": ["polled"], "since": since}
        ) as response:
            assert (response.status, (await response.json())["code"]) == (400, "VALIDATION_FAILED")
    shutil.rmtree(place)  # ends the watches, which are kept for ten minutes otherwise


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"path": ""},
        {"path": "  "},
        {"path": "a\0b"},
        {"path": "x" * 5000},
        {"path": ".", "include": ["a"], "exclude": ["b"]},
        {"path": ".", "include": ["a", 1]},
        {"path": ".", "include": [" "]},
        {"path": ".", "exclude": ["[a]"]},
        {"path": ".", "exclude": ["x" * 2000]},
        {"path": ".", "exclude": ["x"] * 65},
        {"path": ".", "recursive": "yes"},
        {"path": ".", "recursive": None},
        {"path": ".", "events": ["open"]},
        {"path": ".", "sessionId": " "},
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(http: aiohttp.ClientSession, fields: Json) -> None:
    body = await refused(http, 400, "VALIDATION_FAILED", **fields)
    assert body["context"]["validationErrors"][0]["field"]


async def test_only_the_workspace_is_watched(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    for path in ("/", "/etc", "..", "a/../../x", f"{runtime.workspace}x", f"{runtime.workspace}/../x"):
        await refused(http, 403, "PERMISSION_DENIED", path=path)
    body = await refused(http, 404, "FILE_NOT_FOUND", path="missing/../also-missing")
    assert "not found" in body["message"]
