"""Writes that are complete or not there, and trees that are removed, moved and copied."""

import os
import threading
from pathlib import Path

import pytest
from sandpod_runtime.files import copying, editing
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.files.removing import remove
from sandpod_runtime.files.temporary import Temporary


def never() -> None:
    """Nobody leaves."""


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_file_appears_whole_and_with_the_usual_rights(tmp_path: Path, unnamed: bool) -> None:
    temporary = Temporary(str(tmp_path), private=False, unnamed=unnamed)
    os.write(temporary.file, b"content")
    assert len(list(tmp_path.iterdir())) == (0 if unnamed else 1)
    temporary.publish("new", overwrite=False)
    temporary.close()
    (tmp_path / "plain").touch()
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_nothing_is_left_of_what_is_not_published(tmp_path: Path, unnamed: bool, overwrite: bool) -> None:
    (tmp_path / "there").mkdir()
    temporary = Temporary(str(tmp_path), private=True, unnamed=unnamed)
    with pytest.raises(OSError, match="there"):
        temporary.publish("there", overwrite=overwrite)
    temporary.close()
    assert [each.name for each in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_what_is_there_is_overwritten_only_if_wanted(tmp_path: Path, unnamed: bool) -> None:
    (tmp_path / "old").write_text("old")
    for overwrite, expected in ((False, "old"), (True, "")):
        temporary = Temporary(str(tmp_path), private=True, unnamed=unnamed)
        try:
            temporary.publish("old", overwrite=overwrite)
        except FileExistsError:
            assert not overwrite
        temporary.close()
        assert (tmp_path / "old").read_text() == expected
    assert len(list(tmp_path.iterdir())) == 1


def test_a_write_keeps_rights_and_follows_links_to_their_end(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "one").symlink_to("target")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    inode = target.stat().st_ino
    editing.write(str(tmp_path / "two"), [b"new"])
    assert (tmp_path / "two").is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o7777 == 0o640
    assert target.stat().st_ino != inode


def test_all_names_of_a_file_get_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("something longer")
    os.link(tmp_path / "one", tmp_path / "two")
    editing.write(str(tmp_path / "one"), [b"new"])
    assert (tmp_path / "two").read_text() == "new"


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    try:
        os.setxattr(path, "user.colour", b"blue")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    editing.write(str(path), [b"new"])
    assert os.getxattr(path, "user.colour") == b"blue"


def test_a_discarded_draft_is_forgotten_even_while_it_is_written(tmp_path: Path) -> None:
    draft = Draft(str(tmp_path / "file"))
    writing = threading.Thread(target=draft.write, args=([bytes(1 << 22)] * 8,))
    writing.start()
    draft.discard()
    writing.join()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="given up"):
        draft.write([b"more"])


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("directory-with-a-name", dir_fd=here)
        below = os.open("directory-with-a-name", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.close(here)
    remove(str(top), check=never)
    assert list(tmp_path.iterdir()) == []


def test_removal_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to("../kept")
    (tmp_path / "link").symlink_to("kept")
    remove(str(tmp_path / "top"), check=never)
    remove(str(tmp_path / "link"), check=never)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_a_copy_has_links_rights_and_times_of_the_original(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_text("content")
    (source / "sub" / "file").chmod(0o750)
    (source / "link").symlink_to("sub/file")
    os.mkfifo(source / "fifo")
    os.utime(source / "sub" / "file", (1, 2))
    (source / "sub").chmod(0o555)
    final = Path(copying.copy(str(source), str(tmp_path / "copy"), recursive=True, check=never))
    found = (final / "sub" / "file").stat()
    assert (final / "sub" / "file").read_text() == "content"
    assert (found.st_mode & 0o777, found.st_mtime) == (0o750, 2)
    assert (final / "sub").stat().st_mode & 0o777 == 0o555
    assert (final / "link").readlink() == Path("sub/file")
    assert (final / "fifo").is_fifo()
    (final / "sub").chmod(0o755)
    (source / "sub").chmod(0o755)


def test_a_copy_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").touch()
    steps = iter([None, None])

    def check() -> None:
        if next(steps, "left") == "left":
            raise TimeoutError

    (tmp_path / "source" / "sub").mkdir()
    (tmp_path / "source" / "sub" / "deeper").mkdir()
    with pytest.raises(TimeoutError):
        copying.copy(str(tmp_path / "source"), str(tmp_path / "copy"), recursive=True, check=check)
    assert [each.name for each in tmp_path.iterdir()] == ["source"]


def test_a_move_to_another_file_system_is_a_copy_and_a_removal(tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    target = other / f"moved-{os.getpid()}"
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "file").write_text("content")
    try:
        copying.move(str(tmp_path / "tree"), str(target), check=never)
        assert (target / "sub" / "file").read_text() == "content"
        assert list(tmp_path.iterdir()) == []
    finally:
        remove(str(target), check=never)
