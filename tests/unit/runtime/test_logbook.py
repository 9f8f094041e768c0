"""The logs of processes: bytes that keep their offsets, within bounds, for any number of readers."""

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.budget import Budget
from sandpod_runtime.process import logbook, records
from sandpod_runtime.process.logbook import FLOOR, Logbook, StreamLog
from sandpod_runtime.process.records import Processes

MIB = 1 << 20


@given(
    writes=st.lists(st.binary(max_size=30)),
    capacity=st.integers(1, 50),
    reads=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60))),
)
def test_what_is_kept_is_the_end_and_stands_at_its_offset(
    writes: list[bytes], capacity: int, reads: list[tuple[int, int]]
) -> None:
    log = StreamLog(memory=Budget(1000), capacity=capacity)
    for data in writes:
        log.write(data)
    everything = b"".join(writes)
    assert log.total == len(everything)
    assert log.start == max(0, len(everything) - capacity)
    for offset, most in reads:
        begin = max(offset, log.start)
        assert log.read(offset, most) == everything[begin : begin + most]


def test_a_log_without_memory_keeps_its_last_words() -> None:
    log = StreamLog(memory=Budget(0))
    log.write(b"x" * 100_000 + b"end")
    assert log.read(log.start) == b"x" * (FLOOR - 3) + b"end"


def test_memory_comes_back_when_a_log_is_forgotten() -> None:
    memory = Budget(MIB)
    log = StreamLog(memory=memory)
    log.write(bytes(500_000))
    assert not memory.take(MIB)
    log.release()
    assert memory.take(MIB)
    assert (log.total, log.start, log.read(0)) == (500_000, 500_000, b"")
    log.write(b"more")
    assert log.total == 500_004


async def test_waiting_ends_with_what_is_written_with_the_end_or_with_time() -> None:
    log = Logbook(memory=Budget(MIB))
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, log.write_stderr, b"x")
    assert await asyncio.wait_for(log.more(60), 5)
    begun = time.monotonic()
    assert not await log.more(0.05)
    assert time.monotonic() - begun >= 0.04
    loop.call_later(0.01, log.close)
    assert await asyncio.wait_for(log.more(None), 5)


async def test_the_oldest_logs_make_room_and_the_records_stay() -> None:
    memory = Budget(16 * MIB)
    processes = Processes(memory=memory)
    for number in range(4):
        record = processes.add(process_id=f"p{number}", command="x", session_id=None)
        record.log.write_stdout(bytes(3 * MIB // 2))
        record.finish(0)
        await asyncio.sleep(0)
    kept = [len(record.log.stdout.read(0)) for record in processes.all()]
    # All logs together get a quarter of the budget.
    assert kept == [0, 0, 3 * MIB // 2, 3 * MIB // 2]
    assert [record.log.stdout.total for record in processes.all()] == [3 * MIB // 2] * 4
    assert memory.take(12 * MIB)


async def test_a_record_that_is_forgotten_gives_its_memory_back() -> None:
    memory = Budget(16 * MIB)
    processes = Processes(memory=memory)
    for number in range(records.KEPT + 10):
        record = processes.add(process_id=f"p{number}", command="x", session_id=None)
        record.log.write_stdout(bytes(logbook.FLOOR + 100))
        record.finish(0)
        await asyncio.sleep(0)
    assert len(processes) == records.KEPT
    assert memory.taken == records.KEPT * 100
