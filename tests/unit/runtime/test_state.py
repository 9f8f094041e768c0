"""The state directory: where it is, who may look into it, and what becomes of it."""

import os
import stat
from pathlib import Path

import pytest
from sandpod_runtime.state import StateDirectory


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
