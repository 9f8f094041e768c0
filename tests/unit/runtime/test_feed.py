"""Output between a command and a reader that may be slow."""

import asyncio
import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.process.feed import FULL, Feed

WRITES = st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(min_size=1, max_size=50)))


def drained(feed: Feed) -> list[tuple[str, bytes]]:
    return list(iter(feed.pop, None))


@given(writes=WRITES)
def test_order_is_kept_and_nothing_is_lost(writes: list[tuple[str, bytes]]) -> None:
    async def check() -> list[tuple[str, bytes]]:
        feed = Feed()
        for name, data in writes:
            feed.write(name, data)
        found = drained(feed)
        assert feed.size == 0
        return found

    found = asyncio.run(check())
    assert [bytes([byte]) + name.encode() for name, data in found for byte in data] == [
        bytes([byte]) + name.encode() for name, data in writes for byte in data
    ]
    assert all(first[0] != second[0] for first, second in pairwise(found))


async def test_a_feed_says_when_it_is_full_and_when_it_has_room() -> None:
    feed = Feed()
    piece = bytes(65_536)
    assert all(feed.write("stdout", piece) for _ in range(FULL // len(piece) - 1))
    assert feed.write("stdout", piece) is False
    assert not feed.has_room
    feed.pop()
    assert not feed.has_room
    drained(feed)
    assert feed.has_room


async def test_waiting_ends_with_output_with_the_end_or_with_time() -> None:
    feed = Feed()
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, feed.write, "stdout", b"x")
    await asyncio.wait_for(feed.wait(60), 5)
    assert feed.pop() == ("stdout", b"x")
    begun = time.monotonic()
    await feed.wait(0.05)
    assert time.monotonic() - begun >= 0.04
    assert feed.is_quiet
    loop.call_later(0.01, feed.end)
    await asyncio.wait_for(feed.wait(60), 5)
    assert not feed.is_quiet
