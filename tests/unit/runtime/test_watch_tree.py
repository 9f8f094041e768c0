"""A watched tree on a real file system: whatever is renamed, moved and removed, all of it stays watched."""

import os
import resource
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sandpod_runtime.watch.inotify import Inotify, LimitError
from sandpod_runtime.watch.patterns import Filter
from sandpod_runtime.watch.pending import Change, Kind
from sandpod_runtime.watch.tree import EndedError, LostError, Places, Tree

KINDS: frozenset[Kind] = frozenset({"create", "modify", "delete", "move_from", "move_to"})


@contextmanager
def watched(root: Path, *, places: Places | None = None, exclude: tuple[str, ...] = ()) -> Generator[Tree]:
    tree = Tree(
        root=str(root),
        workspace=str(root),
        recursive=True,
        kinds=KINDS,
        wanted=Filter(root=str(root), include=(), exclude=exclude),
        places=places or Places(1000),
    )
    tree.open()
    try:
        yield tree
    finally:
        tree.close()


def changes(tree: Tree) -> list[Change]:
    tree.advance()
    return tree.take()


def look_until(tree: Tree, most: int) -> None:
    for _ in range(most):
        changes(tree)


NAMES = st.sampled_from(["a", "b", "skip"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), PATHS, PATHS),
        st.tuples(st.just("rename"), PATHS, PATHS),
        st.tuples(st.just("remove"), PATHS, PATHS),
        st.tuples(st.just("out"), PATHS, PATHS),
        st.tuples(st.just("in"), PATHS, PATHS),
        st.tuples(st.just("look"), PATHS, PATHS),
    ),
    max_size=12,
)


def do(step: str, one: Path, other: Path, outside: Path) -> None:
    if step == "make":
        one.mkdir(parents=True)
        (one / "file").touch()
    elif step == "rename":
        one.rename(other)
    elif step == "remove":
        shutil.rmtree(one)
    elif step == "out":
        one.rename(outside / str(len(list(outside.iterdir()))))
    elif found := sorted(outside.iterdir()):
        found[0].rename(one)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
@example(steps=[("make", "a", "a"), ("out", "a", "a"), ("make", "a", "a")])
@example(steps=[("make", "a", "a"), ("make", "b", "b"), ("out", "a", "a"), ("rename", "b", "a")])
def test_every_directory_is_watched_whatever_happened(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, outside = Path(name) / "root", Path(name) / "outside"
        root.mkdir()
        outside.mkdir()
        with watched(root, exclude=("skip",)) as tree:
            for step, one, other in steps:
                if step == "look":
                    changes(tree)
                else:
                    try:
                        do(step, root / one, root / other, outside)
                    except OSError:
                        continue
            changes(tree)
            wanted: set[Change] = set()
            for directory, _, _ in os.walk(root):
                proof = Path(directory, "proof")
                proof.touch()
                if "skip" not in proof.relative_to(root).parts:
                    wanted.add(Change("create", str(proof), False))
            for directory, _, _ in os.walk(outside):
                Path(directory, "proof").touch()
            assert set(changes(tree)) == wanted


def test_directories_have_a_bound(tmp_path: Path) -> None:
    places = Places(3)
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    with pytest.raises(LimitError, match="3 directories"), watched(tmp_path, places=places):
        pass
    shutil.rmtree(tmp_path / "0")
    with watched(tmp_path, places=places) as tree:
        (tmp_path / "one more").mkdir()
        with pytest.raises(LimitError):
            tree.advance()
    with watched(tmp_path / "1", places=places):
        pass  # what the others held is free again


def test_what_the_kernel_lost_is_no_secret(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watched(tmp_path) as tree:
        for number in range(most + 2):
            os.mknod(tmp_path / str(number))
        with pytest.raises(LostError, match="max_queued_events"):
            look_until(tree, most)


def test_the_last_changes_come_before_the_end(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").touch()
    with watched(root) as tree:
        shutil.rmtree(root)
        with pytest.raises(EndedError, match="deleted"):
            tree.advance()
        assert tree.take() == [Change("delete", str(root / "file"), False)]


def test_a_lack_of_descriptors_is_told_from_a_lack_of_instances(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    Inotify().close()  # what it imports needs descriptors of its own
    used = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(used)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, hard))
        with pytest.raises(LimitError, match="open files"):
            Inotify()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in held:
            os.close(each)
