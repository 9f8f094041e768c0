"""What the machine and the image say about themselves, taken apart."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.system.cgroup import Cgroup
from sandpod_runtime.system.facts import busy_seconds, disk, meminfo, os_release, text
from sandpod_runtime.system.stats import Meter, Sample, cpus_used
from sandpod_runtime.system.tools import version


def test_a_release_is_read_as_a_shell_would() -> None:
    content = '# a comment\nID=debian\nPRETTY_NAME="A \\"quoted\\" name"\nVERSION_ID=\'12\'\nEMPTY=\n=x\nno\n'
    assert os_release(content) == {
        "ID": "debian",
        "PRETTY_NAME": 'A "quoted" name',
        "VERSION_ID": "12",
        "EMPTY": "",
    }


def test_memory_is_read_in_bytes() -> None:
    content = "MemTotal:        2048 kB\nHugePages_Total:       0\nMemAvailable:    1024 kB\n"
    assert meminfo(content) == {"MemTotal": 2048 * 1024, "MemAvailable": 1024 * 1024}


def test_time_that_is_idle_or_a_guests_does_not_count_twice() -> None:
    content = "cpu  100 10 50 9999 888 5 5 5 70 7\ncpu0 1 1 1 1\n"
    assert busy_seconds(content, ticks=100) == 1.75
    assert busy_seconds("cpu  100 0 100 1 1\n", ticks=100) == 2.0
    assert busy_seconds("", ticks=100) is None


@given(st.text() | st.text("cpu 0123456789:kB\n=\"'\\"))
def test_no_text_is_too_strange(content: str) -> None:
    os_release(content)
    meminfo(content)
    busy_seconds(content, ticks=100)
    version(content)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("git version 2.39.5", "2.39.5"),
        ("go version go1.22.3 linux/amd64", "1.22.3"),
        ("v18.20.4", "18.20.4"),
        ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15"),
        ('openjdk version "17.0.12" 2024-07-16', "17.0.12"),
        ("tmux 3.3a", "3.3a"),
        ("jq-1.6", "1.6"),
        ("rustc 1.80.0-nightly (abc 2024-05-01)", "1.80.0-nightly"),
        ("gcc (Debian 12.2.0-14) 12.2.0", "12.2.0"),
        ("This is perl 5, version 36, subversion 0 (v5.36.0) built for x", "5.36.0"),
        ("nothing", None),
    ],
)
def test_a_version_is_the_first_thing_that_looks_like_one(said: str, found: str | None) -> None:
    assert version(said) == found


def test_files_that_are_none_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert text(str(tmp_path / "fifo")) == ""
    assert text(str(tmp_path)) == ""
    assert text(str(tmp_path / "none")) == ""
    (tmp_path / "file").write_bytes(b"\xff" + b"x" * 100_000)
    assert len(text(str(tmp_path / "file"))) == 65_536


def test_a_place_that_is_not_there_has_no_disk(tmp_path: Path) -> None:
    assert disk(str(tmp_path / "none")) is None
    found = disk(str(tmp_path))
    assert found is not None
    assert 0 <= found.used <= found.total


def test_without_control_groups_the_machine_is_measured(tmp_path: Path) -> None:
    meter = Meter(cgroup=Cgroup(mount=str(tmp_path), membership="/none"), places=(str(tmp_path), "/none"))
    found = meter.sample()
    assert meter.whole_machine
    assert 0 < found.memory <= found.memory_limit
    assert found.cpu_seconds is not None
    assert found.processes > 0
    assert list(found.disks) == [str(tmp_path)]
    assert meter.cpus() >= 1


def container(root: Path, *, cpu: str = "50000 100000") -> Meter:
    for name, content in {
        "cgroup.controllers": "cpu memory\n",
        "cgroup.type": "domain\n",
        "cpu.max": f"{cpu}\n",
        "cpu.stat": "usage_usec 2500000\n",
        "memory.max": "1048576\n",
        "memory.current": "524288\n",
        "memory.stat": "inactive_file 1024\nfile 4096\n",
        "pids.current": "3\n",
        "pids.max": "100\n",
    }.items():
        (root / name).write_text(content)
    return Meter(cgroup=Cgroup(mount=str(root), membership="/none"), places=())


def test_in_a_container_its_own_limits_and_numbers_count(tmp_path: Path) -> None:
    meter = container(tmp_path)
    found = meter.sample()
    assert not meter.whole_machine
    assert meter.cpus() == 0.5
    assert (found.cpu_seconds, found.memory, found.memory_limit, found.cache) == (2.5, 523264, 1048576, 4096)
    assert (found.tasks, found.tasks_limit) == (3, 100)


def test_cpus_are_seconds_per_second(tmp_path: Path) -> None:
    meter = container(tmp_path)
    before = meter.sample()
    (tmp_path / "cpu.stat").write_text("usage_usec 3500000\n")
    after = meter.sample()
    seconds = after.at - before.at
    assert cpus_used(before, after) == pytest.approx(1.0 / seconds)  # pyright: ignore[reportUnknownMemberType]
    assert cpus_used(after, before) == 0.0


def test_an_unknown_time_is_no_use(tmp_path: Path) -> None:
    meter = container(tmp_path)
    (tmp_path / "cpu.stat").unlink()
    samples: list[Sample] = [meter.sample(), meter.sample()]
    assert cpus_used(*samples) == 0.0
