"""What git's own words mean: from the end of its standard error to the protocol's code."""

import re
from typing import NamedTuple

_PLAIN_FAILURE = 128


class Meaning(NamedTuple):
    code: str
    suggestion: str | None = None


# A pathspec that matches nothing is a missing file to `add`, and a missing branch to `checkout`.
UNMATCHED = "UNMATCHED"


# As text: they are compiled (and kept) by the first failure, and not while the runtime starts.
_NO_IDENTITY = (
    r"please tell me who you are|empty ident name|unable to auto-detect email|no (email|name) was given"
)


class _Rule(NamedTuple):
    meaning: Meaning
    words: str


def _rule(code: str, words: str, suggestion: str | None = None) -> _Rule:
    return _Rule(Meaning(code, suggestion), words)


# The first that fits counts: ssh says "could not read from remote repository" after every reason.
_RULES = (
    _rule(
        "GIT_OPERATION_FAILED",
        r"could not read (username|password)|terminal prompts disabled",
        "the repository does not exist or needs credentials: send username and password, or token",
    ),
    # Before what is said of the repository: these are why it could not be written.
    _rule(
        "RESOURCE_BUSY",
        r"\.lock': file exists",
        "another git works in this repository; send this again when it has ended",
    ),
    *(
        _rule(code, rf"^(fatal|error): .*: {reason}$")
        for code, reason in (
            ("NO_SPACE", "(no space left on device|disk quota exceeded)"),
            ("READ_ONLY", "read-only file system"),
            ("PERMISSION_DENIED", "permission denied"),
            ("NOT_DIRECTORY", "not a directory"),
            ("NAME_TOO_LONG", "file name too long"),
            ("FILE_EXISTS", "file exists"),
        )
    ),
    _rule(
        "GIT_AUTH_FAILED",
        r"host key verification failed",
        "the server's key is not in ~/.ssh/known_hosts; ssh-keyscan gets it",
    ),
    _rule(
        "GIT_AUTH_FAILED",
        r"authentication failed|permission denied \(|returned error: 40[13]\b"
        r"|access denied|invalid username or password|invalid credentials",
    ),
    _rule(
        "GIT_REPOSITORY_NOT_FOUND",
        r"detected dubious ownership",
        "the repository belongs to another user: git config --global --add safe.directory <its path>",
    ),
    _rule(
        "GIT_BRANCH_NOT_FOUND",
        r"remote branch .* not found|couldn't find remote ref|invalid reference:|bad revision"
        r"|unknown revision|ambiguous argument|not a valid object name|is not a commit and a branch"
        r"|src refspec .* does not match"
        r"|not a valid start point",
    ),
    _rule(UNMATCHED, r"pathspec '.*' did not match any"),
    _rule(
        "VALIDATION_FAILED",
        r"is not a valid (branch|ref) name|invalid branch name|not a valid refspec"
        r"|a branch named '.*' already exists|cannot (create|lock ref) '.*': '.*' exists",
    ),
    _rule(
        "GIT_REPOSITORY_NOT_FOUND",
        r"repository not found|repository '.*' not found|repository '.*' does not exist"
        r"|not a git repository|does not appear to be a git repository|no such remote",
    ),
    _rule(
        "GIT_NETWORK_ERROR",
        r"could not resolve host|failed to connect|couldn't connect"
        r"|connection (refused|reset|timed out|closed)"
        r"|operation (timed out|too slow)|network is unreachable|no route to host|unable to connect"
        r"|hung up unexpectedly|unexpected disconnect|early eof|rpc failed|empty reply from server"
        r"|returned error: 5\d\d|\bssl|\btls|\bcertificate|unable to access|could not read from remote",
    ),
    _rule("GIT_CLONE_FAILED", r"already exists and is not an empty directory"),
    _rule(
        "GIT_CHECKOUT_FAILED",
        r"would be overwritten by (checkout|switch)",
        "commit or discard the local changes first",
    ),
    _rule(
        "GIT_OPERATION_FAILED",
        r"\[rejected\]|fetch first|non-fast-forward",
        "the remote has commits that are not here: pull first, or push with force",
    ),
    _rule(
        "GIT_OPERATION_FAILED",
        r"need to specify how to reconcile|not possible to fast-forward",
        "both sides have new commits: pull with rebase true or false",
    ),
    _rule(
        "GIT_OPERATION_FAILED",
        _NO_IDENTITY,
        "git config --global user.name and user.email say who commits; a commit may also send its author",
    ),
)
_TAIL = 16_384


def meaning(stderr: str, *, exit_code: int, otherwise: str, unmatched: str) -> Meaning:
    """`otherwise` is the code of what git does not explain in words that we know, `unmatched` that of a
    pathspec that matches nothing.
    """
    tail = stderr[-_TAIL:]
    for rule in _RULES:
        if re.search(rule.words, tail, re.IGNORECASE | re.MULTILINE):
            return Meaning(code=unmatched) if rule.meaning.code == UNMATCHED else rule.meaning
    return Meaning(code="GIT_OPERATION_FAILED" if exit_code == _PLAIN_FAILURE else otherwise)


def lacks_identity(stderr: str) -> bool:
    return re.search(_NO_IDENTITY, stderr, re.IGNORECASE) is not None


def headline(stderr: str) -> str:
    """The line that says most: git's own "fatal:" or "error:", else the last one."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", stderr) if line.strip()]
    for prefix in ("fatal:", "error:", "ERROR:"):
        for line in lines:
            if line.startswith(prefix):
                return line[:1000]
    return lines[-1][:1000] if lines else ""
