"""What is read from control groups: of version 2, of version 1, and where there are none."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.system.cgroup import Cgroup, Limits, Usage, keyed, memberships, number, quota
from sandpod_runtime.system.cpu import UserCpu, descendants_ticks, user_cpu_seconds

from tests.support.waiting import eventually

MIB = 1 << 20


def written(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def version_2(root: Path) -> str:
    return written(
        root,
        {
            "cgroup.controllers": "cpu memory pids\n",
            "cgroup.type": "domain\n",
            "cpu.max": "150000 100000\n",
            "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nnr_throttled 3\nthrottled_usec 500000\n",
            "memory.max": f"{512 * MIB}\n",
            "memory.current": f"{300 * MIB}\n",
            "memory.stat": f"anon 1\nfile {150 * MIB}\ninactive_file {100 * MIB}\n",
            "pids.max": "max\n",
            "pids.current": "12\n",
        },
    )


def membership(root: Path, text: str) -> str:
    path = root / "membership"
    path.write_text(text)
    return str(path)


def test_version_2_is_read_as_a_container_sees_it(tmp_path: Path) -> None:
    found = Cgroup(mount=version_2(tmp_path), membership=membership(tmp_path, "0::/\n"))
    assert (found.version, found.is_our_own) == (2, True)
    assert found.limits() == Limits(cpus=1.5, memory=512 * MIB)
    assert found.usage() == Usage(
        cpu_seconds=2.5, throttled_seconds=0.5, memory=200 * MIB, cache=150 * MIB, processes=12
    )


def test_a_limit_of_a_group_above_ours_counts_as_well(tmp_path: Path) -> None:
    mount = version_2(tmp_path)
    written(tmp_path / "pod/container", {"cpu.max": "max 100000\n", "memory.max": "max\n"})
    written(tmp_path / "pod", {"cpu.max": "50000 100000\n", "memory.max": f"{600 * MIB}\n"})
    found = Cgroup(mount=mount, membership=membership(tmp_path, "0::/pod/container\n"))
    assert found.limits() == Limits(cpus=0.5, memory=512 * MIB)


@pytest.mark.parametrize("path", ["/../elsewhere", "/not/there", "/.."])
def test_a_group_that_cannot_be_seen_is_the_one_that_is_mounted(tmp_path: Path, path: str) -> None:
    found = Cgroup(mount=version_2(tmp_path), membership=membership(tmp_path, f"0::{path}\n"))
    assert found.limits().memory == 512 * MIB


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    mount = written(
        tmp_path,
        {
            "cpu/cpu.cfs_quota_us": "200000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
            "cpu/cpu.stat": "nr_periods 1\nthrottled_time 2000000000\n",
            "cpuacct/cpuacct.usage": "1500000000\n",
            "memory/mine/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/memory.limit_in_bytes": f"{64 * MIB}\n",
            "memory/mine/memory.usage_in_bytes": f"{32 * MIB}\n",
            "memory/mine/memory.stat": f"cache 5\ntotal_cache {8 * MIB}\ntotal_inactive_file {40 * MIB}\n",
        },
    )
    found = Cgroup(mount=mount, membership=membership(tmp_path, "4:memory:/mine\n2:cpu,cpuacct:/\n0::/\n"))
    assert (found.version, found.is_our_own) == (1, True)
    assert found.limits() == Limits(cpus=2.0, memory=64 * MIB)
    assert found.usage() == Usage(cpu_seconds=1.5, throttled_seconds=2.0, memory=0, cache=8 * MIB)


def test_without_control_groups_nothing_is_known(tmp_path: Path) -> None:
    found = Cgroup(mount=str(tmp_path), membership=str(tmp_path / "none"))
    assert (found.version, found.is_our_own) == (0, False)
    assert found.limits() == Limits()
    assert found.usage() == Usage()


def test_the_whole_machines_group_is_not_a_containers(tmp_path: Path) -> None:
    written(tmp_path / "two", {"cgroup.controllers": "cpu\n", "cpu.stat": "usage_usec 1\n"})
    assert not Cgroup(mount=str(tmp_path / "two"), membership="/none").is_our_own
    written(tmp_path / "one", {"cpuacct/cpuacct.usage": "1\n", "cpuacct/release_agent": "\n"})
    assert not Cgroup(mount=str(tmp_path / "one"), membership="/none").is_our_own


@given(text=st.text() | st.text("0123456789:,/.- \nmaxcpumemory"))
def test_no_text_is_too_strange(text: str) -> None:
    memberships(text)
    assert all(value >= 0 for value in keyed(text).values())
    assert (number(text) or 0) >= 0
    assert (quota(text) or 0) >= 0


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 30))
def test_a_quota_is_a_number_of_cpus(used: int, period: int) -> None:
    assert quota(f"{used} {period}\n") == used / period
    assert quota(f"-1 {period}") is None
    assert quota(f"max {period}") is None
    assert quota(f"{used} 0") is None


def test_the_cpu_time_of_all_descendants_is_added_up() -> None:
    def stat(name: bytes, parent: int, *ticks: int) -> bytes:
        times = b" ".join(b"%d" % each for each in ticks)
        return b"1 (%b) S %d 1 1 0 -1 4194304 95 0 0 0 %b 20 0 1" % (name, parent, times)

    stats = {
        1: stat(b"runtime", 0, 900, 900, 900, 900),
        2: stat(b"sh) S 9 (", 1, 1, 2, 3, 4),
        3: stat(b"a child", 2, 10, 20, 30, 40),
        4: stat(b"a stranger", 7, 500, 500, 500, 500),
    }
    assert descendants_ticks(stats, root=1) == 110
    assert descendants_ticks({}, root=1) == 0


def test_processes_that_have_ended_count_on() -> None:
    meter = UserCpu(Cgroup(mount="/none", membership="/none"))
    before = meter.seconds()
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-S", "-c", burn], check=True)
    assert meter.seconds() >= before + 0.2


def test_processes_that_live_count_as_well() -> None:
    meter = UserCpu(Cgroup(mount="/none", membership="/none"))
    before = meter.seconds()
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        try:
            eventually(lambda: meter.seconds() >= before + 0.2, every=0.02)
        finally:
            process.kill()


def test_cpu_time_never_goes_back(tmp_path: Path) -> None:
    meter = UserCpu(Cgroup(mount=str(tmp_path), membership="/none"))
    readings = [meter.seconds() for _ in range(5)]
    assert readings == sorted(readings)
    assert user_cpu_seconds() <= user_cpu_seconds()
