"""git's output, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from sandpod_runtime.git.failures import headline, meaning
from sandpod_runtime.git.parsing import LOG_FIELDS, Status, branches, commits, conflicts, push_updates
from sandpod_runtime.git.progress import Lines, Progress, parsed

PATH = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
FIELD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
LETTERS = st.text("MADRCTU.", min_size=2, max_size=2)


@given(
    changed=st.lists(st.tuples(LETTERS, PATH)),
    renamed=st.lists(st.tuples(LETTERS, PATH, PATH)),
    untracked=st.lists(PATH),
)
def test_every_name_comes_back_from_a_status(
    changed: list[tuple[str, str]], renamed: list[tuple[str, str, str]], untracked: list[str]
) -> None:
    records = ["# branch.oid abc", "# branch.head main", "# branch.upstream o/main", "# branch.ab +2 -1"]
    for letters, path in changed:
        records.append(f"1 {letters} N... 100644 100644 100644 abc def {path}")
    for letters, path, old in renamed:
        records += [f"2 {letters} N... 100644 100644 100644 abc def R100 {path}", old]
    records += [f"? {path}" for path in untracked]
    output = b"".join(record.encode() + b"\0" for record in records)
    found = Status(output, limit=1000)
    assert (found.branch, found.commit, found.upstream) == ("main", "abc", "o/main")
    assert (found.ahead, found.behind) == (2, 1)
    names = [(entry.path, entry.index + entry.worktree) for entry in found.entries if entry.kind == "changed"]
    assert names == [(path, letters) for letters, path in changed]
    moves = [(entry.path, entry.original_path) for entry in found.entries if entry.kind == "renamed"]
    assert moves == [(path, old) for _, path, old in renamed]
    assert [entry.path for entry in found.entries if entry.kind == "untracked"] == untracked
    assert found.count == len(changed) + len(renamed) + len(untracked)
    few = Status(output, limit=1)
    assert (len(few.entries), few.count) == (min(1, found.count), found.count)


@given(st.binary() | st.text("12u?!# NM.0\0\n+-").map(str.encode), st.integers(0, 200))
def test_no_output_is_too_strange(output: bytes, cut: int) -> None:
    Status(output[:cut], limit=5)
    commits(output[:cut])
    branches(output[:cut])
    push_updates(output[:cut])
    conflicts(output[:cut])


@given(st.lists(st.lists(FIELD, min_size=11, max_size=11), max_size=5))
def test_every_commit_comes_back_from_a_log(records: list[list[str]]) -> None:
    output = "".join("\0".join(record) + "\0" for record in records).encode()
    found = commits(output)
    assert len(found) == len(records)
    for record, commit in zip(records, found, strict=True):
        fields = dict(zip(LOG_FIELDS, record, strict=True))
        assert (commit.commit, commit.subject) == (fields["H"], fields["s"])
        assert (commit.author.name, commit.committer.email) == (fields["an"], fields["ce"])


def test_a_log_that_was_cut_ends_before_the_broken_record() -> None:
    record = "\0".join("abcdefghijk") + "\0"
    assert [commit.commit for commit in commits((record * 3)[:-4].encode())] == ["a", "a"]


def test_branches_have_what_is_known_of_their_upstream() -> None:
    lines = [
        "*\0refs/heads/main\0abc\0origin/main\0[ahead 2, behind 1]\0\0Fix it",
        " \0refs/heads/old\0def\0origin/old\0[gone]\0\0",
        " \0refs/heads/a/b\0def\0\0\0\0x",
        " \0refs/remotes/origin/HEAD\0abc\0\0\0refs/remotes/origin/main\0Fix it",
        " \0refs/remotes/origin/main\0abc\0\0\0\0Fix it",
    ]
    found = branches("\n".join(lines).encode())
    assert [(branch.name, branch.remote, branch.current) for branch in found] == [
        ("main", False, True),
        ("old", False, False),
        ("a/b", False, False),
        ("origin/main", True, False),
    ]
    assert (found[0].ahead, found[0].behind, found[0].gone) == (2, 1, False)
    assert found[1].gone is True
    assert found[2].upstream is UNSET


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "GIT_OPERATION_FAILED"),
        ("remote: Invalid username or password.\nfatal: Authentication failed for 'x'", "GIT_AUTH_FAILED"),
        (
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "GIT_AUTH_FAILED",
        ),
        ("Host key verification failed.\nfatal: Could not read from remote", "GIT_AUTH_FAILED"),
        ("fatal: unable to access 'x': The requested URL returned error: 403", "GIT_AUTH_FAILED"),
        ("fatal: Remote branch nope not found in upstream origin", "GIT_BRANCH_NOT_FOUND"),
        ("fatal: couldn't find remote ref nope", "GIT_BRANCH_NOT_FOUND"),
        ("ERROR: Repository not found.\nfatal: Could not read from remote", "GIT_REPOSITORY_NOT_FOUND"),
        ("fatal: repository 'https://h/x/' not found", "GIT_REPOSITORY_NOT_FOUND"),
        ("fatal: not a git repository (or any of the parent directories): .git", "GIT_REPOSITORY_NOT_FOUND"),
        ("fatal: detected dubious ownership in repository at '/x'", "GIT_REPOSITORY_NOT_FOUND"),
        ("fatal: unable to access 'x': Could not resolve host: h", "GIT_NETWORK_ERROR"),
        ("error: RPC failed; curl 28 Operation too slow.\nfatal: early EOF", "GIT_NETWORK_ERROR"),
        ("fatal: unable to access 'x': server certificate verification failed", "GIT_NETWORK_ERROR"),
        ("fatal: destination path 'x' already exists and is not an empty directory.", "GIT_CLONE_FAILED"),
        ("error: unable to create file a: No space left on device\nfatal: unable to checkout", "NO_SPACE"),
        ("fatal: could not create work tree dir 'x': Permission denied", "PERMISSION_DENIED"),
        ("fatal: cannot mkdir x: Not a directory", "NOT_DIRECTORY"),
        ("fatal: Unable to create '/x/.git/index.lock': File exists.\n\nAnother git", "RESOURCE_BUSY"),
        ("fatal: a branch named 'main' already exists", "VALIDATION_FAILED"),
        ("fatal: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot", "VALIDATION_FAILED"),
        ("fatal: something nobody has seen", "GIT_OPERATION_FAILED"),
    ],
)
def test_what_git_says_has_a_code(stderr: str, code: str) -> None:
    assert meaning(stderr, exit_code=128, otherwise="GIT_CLONE_FAILED", unmatched="X").code == code


def test_what_is_not_explained_depends_on_the_exit_code() -> None:
    assert meaning("", exit_code=1, otherwise="GIT_CLONE_FAILED", unmatched="X").code == "GIT_CLONE_FAILED"
    assert (
        meaning("error: pathspec 'x' did not match any", exit_code=1, otherwise="Y", unmatched="X").code
        == "X"
    )


def test_the_headline_is_gits_own_reason() -> None:
    assert headline("remote: hello\nerror: a\nfatal: b\n\n") == "fatal: b"
    assert headline("one\rtwo\n\n") == "two"
    assert headline("") == ""


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_lines_do_not_depend_on_how_they_arrive(pieces: list[bytes]) -> None:
    whole = b"".join(pieces) + b"\n"
    lines = Lines()
    assert [line for piece in [*pieces, b"\n"] for line in lines.feed(piece)] == Lines().feed(whole)


def test_a_line_without_an_end_is_bounded() -> None:
    lines = Lines()
    for _ in range(100):
        assert lines.feed(b"x" * 10_000) == []
    (line,) = lines.feed(b"\n")
    assert len(line) == 500


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        (
            "Receiving objects:  50% (1/2), 1.2 MiB | 3 MiB/s",
            {"phase": "Receiving objects", "percent": 50, "current": 1, "total": 2},
        ),
        ("remote: Enumerating objects: 5, done.", {"phase": "Enumerating objects", "current": 5}),
        (
            "remote: Counting objects: 100% (7/7), done.",
            {"phase": "Counting objects", "percent": 100, "current": 7, "total": 7},
        ),
        ("Cloning into 'x'...", {}),
        ("fatal: 5 is not enough", {}),
        ("Lines: 999% (9/1)", {"phase": "Lines", "percent": 100, "current": 9, "total": 1}),
    ],
)
def test_progress_is_read_from_a_line(line: str, progress: dict[str, int]) -> None:
    assert parsed(line) == Progress(text=line, **progress)  # pyright: ignore[reportArgumentType]


@given(st.text())
def test_no_line_of_progress_is_too_strange(line: str) -> None:
    assert parsed(line).text == line
