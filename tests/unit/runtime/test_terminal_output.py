"""What a terminal wrote on its way to those who watch: nothing lost, nothing twice, within bounds."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_runtime.budget import Budget
from sandpod_runtime.terminal.broadcast import Broadcast
from sandpod_runtime.terminal.scrollback import FLOOR, SIZE, Scrollback
from sandpod_runtime.terminal.viewer import FULL, LIMIT, NO_MEMORY, ROOM, TOO_SLOW, Farewell, Viewer

ENOUGH = 1 << 30
BYE = Farewell(code=1000, reason="bye", message=b"{}")


def ignored() -> None:
    pass


def broadcast(memory: Budget | None = None) -> Broadcast:
    return Broadcast(memory=memory or Budget(ENOUGH), on_room=ignored)


async def received(viewer: Viewer) -> bytes:
    """What waits for a viewer now."""
    found = bytearray()
    while isinstance(piece := await viewer.next(0), bytes):
        found += piece
    return bytes(found)


@given(st.lists(st.binary(max_size=300), max_size=40), st.data())
async def test_the_replay_and_what_is_live_are_all_that_was_written(
    chunks: list[bytes], data: st.DataObject
) -> None:
    """Whoever attaches at whatever moment, and however often it reads in between."""
    output = broadcast()
    moments = data.draw(st.lists(st.integers(0, len(chunks)), max_size=4), label="attached before")
    reads = data.draw(st.sets(st.integers(0, len(chunks))), label="read before")
    viewers: list[tuple[bytearray, Viewer]] = []
    for number in range(len(chunks) + 1):
        for _ in range(moments.count(number)):
            replay, viewer = output.attach()
            viewers.append((bytearray(replay), viewer))
        if number in reads:
            for seen, viewer in viewers:
                seen += await received(viewer)
        if number < len(chunks):
            output.write(chunks[number])
    for seen, viewer in viewers:
        seen += await received(viewer)
        assert bytes(seen) == b"".join(chunks)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 200_000), max_size=12), st.integers(0, 12))
async def test_a_replay_is_the_end_of_all_that_was_written_before(sizes: list[int], moment: int) -> None:
    output = broadcast()
    written = bytearray()
    seen = b""
    viewer: Viewer | None = None
    for number, size in enumerate(sizes):
        if number == moment:
            seen, viewer = output.attach()
            assert seen == bytes(written[-SIZE:])
        chunk = bytes((number + index) % 251 for index in range(size))
        written += chunk
        output.write(chunk)
        if viewer is not None:
            seen += await received(viewer)
    if viewer is not None:
        assert written.endswith(seen)


def test_scrollback_keeps_a_screen_even_when_there_is_no_memory() -> None:
    memory = Budget(0)
    scrollback = Scrollback(memory)
    scrollback.write(b"a" * FLOOR + b"the end")
    assert scrollback.content() == (b"a" * FLOOR + b"the end")[-FLOOR:]
    scrollback.release()
    assert memory.take(0)


def test_scrollback_gives_its_memory_back() -> None:
    memory = Budget(SIZE)
    scrollback = Scrollback(memory)
    for _ in range(10):
        scrollback.write(b"x" * 100_000)
    assert len(scrollback.content()) == SIZE
    assert not memory.take(FLOOR + 1)
    scrollback.release()
    assert memory.take(SIZE)


async def test_a_viewer_too_far_behind_is_cut_off_and_the_other_is_not() -> None:
    memory = Budget(ENOUGH)
    output = broadcast(memory)
    _, slow = output.attach()
    _, quick = output.attach()
    chunk = b"x" * 65_536
    total = 0
    while not slow.was_cut.done():
        output.write(chunk)
        total += len(await received(quick))
        assert output.is_wanted
    assert LIMIT - len(chunk) < total - len(chunk) <= LIMIT
    assert slow.was_cut.result() == TOO_SLOW
    assert await slow.next(0) == TOO_SLOW
    assert len(output) == 1
    output.write(b"more")
    assert await received(quick) == b"more"


async def test_the_fastest_viewer_sets_the_pace() -> None:
    wanted: list[str] = []
    output = Broadcast(memory=Budget(ENOUGH), on_room=lambda: wanted.append("room"))
    assert output.is_wanted  # by nobody, so nobody has to be waited for
    _, slow = output.attach()
    _, quick = output.attach()
    while output.is_wanted:
        output.write(b"x" * 10_000)
    assert not wanted
    for _ in range(FULL // ROOM + 1):
        await quick.next(0)
    assert wanted == ["room"]
    assert output.is_wanted
    assert not slow.has_room
    assert not slow.was_cut.done()


async def test_when_the_last_who_had_no_room_leaves_output_is_wanted_again() -> None:
    wanted: list[str] = []
    output = Broadcast(memory=Budget(ENOUGH), on_room=lambda: wanted.append("room"))
    _, viewer = output.attach()
    while output.is_wanted:
        output.write(b"x" * 10_000)
    output.detach(viewer)
    assert wanted == ["room"]


async def test_what_waits_is_on_the_budget_and_given_back() -> None:
    memory = Budget(1000)
    output = broadcast(memory)
    _, viewer = output.attach()
    _, other = output.attach()
    output.write(b"x" * 600)
    assert viewer.was_cut.done() != other.was_cut.done()
    cut, alive = (viewer, other) if viewer.was_cut.done() else (other, viewer)
    assert cut.was_cut.result() == NO_MEMORY
    assert await received(alive) == b"x" * 600
    output.detach(alive)
    output.end(BYE)
    assert memory.take(1000)


async def test_a_farewell_follows_what_waits() -> None:
    output = broadcast()
    _, viewer = output.attach()
    output.write(b"last words")
    output.end(BYE)
    output.write(b"of somebody else")
    assert await viewer.next(0) == b"last words"
    assert await viewer.next(0) == BYE
    assert await viewer.next(0) == BYE


async def test_who_attaches_after_the_end_sees_it_all_the_same() -> None:
    output = broadcast()
    output.write(b"last words")
    output.end(BYE)
    replay, viewer = output.attach()
    assert replay == b"last words"
    assert await viewer.next(0) == BYE


async def test_a_viewer_who_is_cut_off_hears_that_and_not_the_end() -> None:
    output = broadcast()
    _, viewer = output.attach()
    output.cut(TOO_SLOW)
    output.end(BYE)
    assert await viewer.next(0) == TOO_SLOW
    assert viewer.was_cut.result() == TOO_SLOW


async def test_small_pieces_leave_together_and_large_ones_are_not_cut() -> None:
    output = broadcast()
    _, viewer = output.attach()
    for _ in range(100):
        output.write(b"1234567890")
    output.write(b"x" * 100_000)
    assert await viewer.next(0) == b"1234567890" * 100
    assert await viewer.next(0) == b"x" * 100_000


async def test_waiting_ends_with_output_or_with_time() -> None:
    output = broadcast()
    _, viewer = output.attach()
    assert await viewer.next(0.001) is None
    waiting = asyncio.create_task(viewer.next(60))
    await asyncio.sleep(0)
    output.write(b"now")
    assert await waiting == b"now"


@pytest.mark.parametrize("size", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE])
def test_scrollback_is_a_ring(size: int) -> None:
    scrollback = Scrollback(Budget(ENOUGH))
    data = bytes(index % 251 for index in range(size))
    scrollback.write(data)
    assert scrollback.content() == data[-SIZE:]
