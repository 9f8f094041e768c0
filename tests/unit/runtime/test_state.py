"""The state directory: where it is, who may look into it, and what becomes of it."""

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest
from sandpod_runtime.state import StateDirectory, read_whole, write_whole


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_a_chosen_directory_is_made_and_stays(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path / "deep" / "state"))
    assert state.persistent
    found = state.path("sessions")
    assert found == str(tmp_path / "deep" / "state" / "sessions")
    assert mode(found) == 0o700
    state.dispose()
    assert Path(found).is_dir()


def test_one_in_a_workspace_is_hidden_from_git_and_made_anew(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path / "own"))
    for _ in range(2):
        found = Path(state.path("sessions"))
        assert mode(found) == mode(found.parent) == 0o700
        assert (found.parent / ".gitignore").read_text() == "*\n"
        shutil.rmtree(found.parent)
    (tmp_path / "link").symlink_to(tmp_path)
    assert state.below(str(tmp_path)) == state.below(f"{tmp_path}/link/") == "own"
    assert state.below("/") == str(tmp_path / "own")[1:]
    assert state.below(str(tmp_path / "own")) is state.below(str(tmp_path / "ow")) is None
    assert StateDirectory(default=str(tmp_path / "absent")).below(str(tmp_path)) is None


@pytest.mark.parametrize("kind", ["link", "file"])
def test_another_thing_in_its_place_is_left_alone(tmp_path: Path, kind: str) -> None:
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "own").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "own").touch()
    with pytest.raises(NotADirectoryError):
        StateDirectory(str(tmp_path / "own")).path("sessions")
    assert not list(tmp_path.glob("elsewhere/*"))


def test_who_only_reads_makes_nothing(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path / "own"))
    assert state.existing("sessions") is None
    assert list(tmp_path.iterdir()) == []
    found = state.path("sessions")
    assert state.existing("sessions") == found
    assert state.existing("backups") is None
    Path(found).rmdir()
    Path(found).symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError):
        state.existing("sessions")
    assert StateDirectory(default=str(tmp_path / "absent")).existing("sessions") is None


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "file"
    write_whole(str(place), b"old")
    assert mode(place) == 0o600

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(str(place), b"new")
    assert place.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [place], "half a file takes room"


def test_only_a_file_of_measure_is_read(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"1234")
    assert read_whole(str(place), largest=4) == b"1234"
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_whole(str(place), largest=3)
    (tmp_path / "link").symlink_to(place)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "."):
        with pytest.raises(OSError):  # noqa: PT011 (each in its own words)
            read_whole(str(tmp_path / name), largest=4)


def test_what_the_operator_mounts_is_taken(tmp_path: Path) -> None:
    state = StateDirectory(default=str(tmp_path))
    assert state.persistent
    assert state.path("backups") == str(tmp_path / "backups")


def test_without_a_mount_there_is_a_private_directory_for_this_life(tmp_path: Path) -> None:
    state = StateDirectory(default=str(tmp_path / "absent"))
    assert not state.persistent
    first, second = Path(state.path("sessions")), Path(state.path("backups"))
    assert first.parent == second.parent
    assert mode(first.parent) == mode(first) == 0o700
    state.dispose()
    assert not first.parent.exists()


def test_two_runtimes_do_not_share_one(tmp_path: Path) -> None:
    states = [StateDirectory(default=str(tmp_path / "absent")) for _ in range(2)]
    assert len({state.path("sessions") for state in states}) == 2
    for state in states:
        state.dispose()


def test_a_directory_that_a_cleaner_removed_is_made_again(tmp_path: Path) -> None:
    state = StateDirectory(default=str(tmp_path / "absent"))
    found = Path(state.path("sessions"))
    found.rmdir()
    found.parent.rmdir()
    assert state.path("sessions") == str(found)
    assert mode(found) == 0o700
    state.dispose()


def test_a_directory_that_a_mount_has_opened_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions").chmod(0o2770)
    assert mode(StateDirectory(str(tmp_path)).path("sessions")) == 0o700


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_directory_is_never_written_through(tmp_path: Path, kind: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    place = tmp_path / "state" / "sessions"
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_text("")
    with pytest.raises(NotADirectoryError):
        StateDirectory(str(place.parent)).path("sessions")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_elses_in_the_place_of_ours_is_refused(tmp_path: Path) -> None:
    state = StateDirectory(default=str(tmp_path / "absent"))
    root = Path(state.path("sessions")).parent
    os.chown(root, 12345, 12345)
    with pytest.raises(PermissionError):
        state.path("sessions")
    state.dispose()
