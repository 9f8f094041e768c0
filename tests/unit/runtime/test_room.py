"""When a file system counts as full, and when no more."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.disk import Disk
from sandpod_runtime.lifecycle.room import Room, judged, may_write, opens_to

MIB, GIB = 1 << 20, 1 << 30


def found(*, total: int, free: int, inodes: int = 1000, inodes_free: int = 500) -> os.statvfs_result:
    return cast(
        "os.statvfs_result",
        SimpleNamespace(f_frsize=1, f_blocks=total, f_bavail=free, f_files=inodes, f_favail=inodes_free),
    )


def is_full(*, was_full: bool = False, **facts: Any) -> bool:
    return judged("/workspace", found(**facts), was_full=was_full).full


@pytest.mark.parametrize(
    ("total", "limit"),
    [(10 * GIB, 10 * GIB // 100), (GIB, 16 * MIB), (100 * MIB, 16 * MIB), (8 * MIB, 2 * MIB)],
)
def test_less_than_a_hundredth_or_16_mib_is_full_until_there_is_twice_as_much(total: int, limit: int) -> None:
    assert not is_full(total=total, free=limit)
    assert is_full(total=total, free=limit - 1)
    assert is_full(total=total, free=2 * limit - 1, was_full=True)
    assert not is_full(total=total, free=2 * limit, was_full=True)


def test_without_an_inode_it_is_full_and_where_none_are_counted_it_is_not() -> None:
    assert is_full(total=GIB, free=GIB, inodes_free=0)
    assert not is_full(total=GIB, free=GIB, inodes=0, inodes_free=0)


@given(total=st.integers(0, 1 << 50), free=st.integers(0, 1 << 50), was_full=st.booleans())
def test_an_empty_file_system_is_never_full_and_a_used_up_one_is(
    total: int, free: int, was_full: bool
) -> None:
    assert not is_full(total=total, free=total, was_full=was_full)
    if total >= 100:
        assert is_full(total=total, free=0, was_full=was_full)


async def test_it_is_looked_at_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def statvfs(path: str) -> os.statvfs_result:
        looks.append(path)
        return found(total=GIB, free=len(looks))

    monkeypatch.setattr("os.statvfs", statvfs)
    now = [100.0]
    room = Room(disk=Disk(), path="/workspace", clock=lambda: now[0])
    spaces = await asyncio.gather(*(room.look() for _ in range(10)))
    assert [space and space.free for space in spaces] == [1] * 10
    now[0] += 0.9
    await room.look()
    assert looks == ["/workspace"]
    now[0] += 0.1
    again = await room.look()
    assert again is not None
    assert again.free == 2


async def test_where_nothing_outlives_a_sleep_nobody_looks() -> None:
    assert await Room(disk=Disk(), path=None).look() is None


async def test_a_workspace_that_has_gone_is_not_judged() -> None:
    assert await Room(disk=Disk(), path="/no/such/place").look() is None


SOMEBODY = 4321


@pytest.mark.parametrize(
    ("owner", "group", "mode", "writable"),
    [
        pytest.param(0, 0, 0o755, False, id="a volume that the driver has left to root"),
        pytest.param(0, SOMEBODY, 0o2775, True, id="one that was given to the group"),
        pytest.param(0, SOMEBODY, 0o2755, False, id="one that the group may only read"),
        pytest.param(SOMEBODY, 0, 0o700, True, id="the user's own"),
        pytest.param(SOMEBODY, SOMEBODY, 0o577, False, id="the user's own, closed to the user alone"),
        pytest.param(0, 0, 0o777, True, id="one that is open to all"),
        pytest.param(0, 0, 0o776, False, id="one that cannot be entered"),
    ],
)
def test_whether_commands_can_write_is_asked_for_their_user(
    owner: int, group: int, mode: int, writable: bool
) -> None:
    directory = SimpleNamespace(st_uid=owner, st_gid=group, st_mode=0o040000 | mode)

    assert opens_to(cast("os.stat_result", directory), user=SOMEBODY) is writable


def test_where_the_runtime_is_another_than_its_user_the_user_is_asked_for(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert not may_write(str(tmp_path), user=SOMEBODY)
    tmp_path.chmod(0o777)
    assert may_write(str(tmp_path), user=SOMEBODY)


def test_in_standard_isolation_it_is_the_runtimes_own_user(tmp_path: Path) -> None:
    assert may_write(str(tmp_path), user=None)
    assert not may_write(str(tmp_path / "none"), user=None)


async def test_what_is_found_says_whether_it_can_be_written_to(tmp_path: Path) -> None:
    space = await Room(disk=Disk(), path=str(tmp_path)).look()

    assert space is not None
    assert space.writable
