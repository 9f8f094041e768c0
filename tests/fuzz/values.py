"""Values for requests: right, nearly right, and wrong, from the schemas in openapi.json.

What runs, and where, is never random: commands, programs, addresses and paths come from lists of
harmless ones.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

# What the workspace is furnished with, and what goes with it in other fields.
FILES = ["a", "b", "sub/c", "sub/deep/d", "text.txt", "big.txt", "sub", "."]
COMMANDS = [
    "true", "false", "echo hello", "exit 3", "cat", "sleep 0.05", "printf 'a\\0b\\377'", "echo ä€ >&2", "pwd",
    "cd /tmp", "cd missing", "export FUZZED=1", "unset FUZZED", "alias ll='ls -l'", "f() { echo $1; }; f x",
    "head -c 200000 /dev/zero", "yes | head -n 20000", "exec >/dev/null", "exec 3>&-", "set -e; false",
    "kill -9 $$", "trap '' TERM; sleep 0.1", "echo 'unterminated", "cat <<'X'\nhere\nX", "(sleep 0.2 &)",
    "setsid sleep 0.3 &", "umask 077; touch made", "read line; echo \"$line\"", "", "  ", "\0", "# nothing",
]  # fmt: skip
LASTING = [
    *["sleep 30", "cat"] * 10,
    "sleep 20",
    "while :; do echo line; sleep 0.02; done",
    "trap '' TERM; sleep 30",
    "cat",
    *COMMANDS,
]
NAMES = ["one", "two", "three", "four"]
ODD_NAMES = ["", " ", "__DISABLE_SESSION__", "a b", "ä", "x" * 300, "../x", "a/b", "a\nb", "\0", "."]
PATHS = [
    "a", "b", "sub", "sub/c", "sub/deep/d", "new", "new/x/y", "text.txt", "binary.bin", "big.txt", "fifo",
    "socket", "link", "loop", "broken", "locked", "locked-directory", "locked-directory/x", "repository",
    "picture.png", "archive.tar.gz", "archive.zip", ".hidden", ".", "sub/../a", "sub/./c", "ä€", "with space",
    "new\nline", "-rf", "*", "$HOME", "~", "a/", "a/below-a-file", "x" * 256, "sub/" + "y/" * 100,
]  # fmt: skip
BAD_PATHS = ["", " ", "a\0b", "z" * 5000, "sub/" * 1200]
# Of the system's own only what cannot be harmed by an ordinary user, and only where something is read.
SYSTEM_PATHS = [
    "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/proc/self/mem", "/proc/self/fd", "/proc/self/maps",
    "/proc/self/environ", "/proc/self", "/proc/kmsg", "/sys/kernel/notes", "/root", "/etc/shadow",
]  # fmt: skip
ADDRESSES = [
    "file:///nowhere", "https://127.0.0.1:1/x.git", "https://user:secret@127.0.0.1:1/x", "git://127.0.0.1:1/x",
    "repository", "", " ", "-u", "--upload-pack=true", "https://", "http://[::1", "x" * 3000, "\0",
]  # fmt: skip
EXPRESSIONS = [
    "a", "line", "*.txt", "**/*", "?", "one", "^.*$", "(a+)+$", "(", "[", "\\", "a{1,99999}", "*", "", "ä",
    "\0",
]  # fmt: skip
FIXED: dict[str, list[Any]] = {
    "shell": ["/bin/sh", "sh", "bash", "/bin/true", "/nowhere", "", "/dev/null", "a\0b"],
    "signal": ["TERM", "KILL", "SIGINT", "HUP", "9", 15, 1, 0, 64, 99, -1, "NOPE", ""],
    "port": [1, 9, 65535],
    "host": ["localhost", "127.0.0.1", "", "nowhere.invalid"],
    "hostname": ["localhost"],
    "since": ["", "watch-1-1:0", "watch-1-1900000000000:5", "nonsense"],
    "uid": ["x"],
    "format": ["tar.gz", "tar", "zip", "rar", ""],
    "sha256": ["0" * 64, "x", ""],
    "author": ["A <a@example.invalid>"],
    "remote": ["origin", "nowhere", "", "-x"],
    "branch": ["main", "missing", "", "-x", "a b", "x" * 500],
    "ref": ["HEAD", "main", "missing", "-x"],
    "old": ["first", "one", "missing", ""],
    "content": ["hello\n", "", "ä€\n", "aGVsbG8=", "not base64!", "x" * 100_000],
    "data": ["hello\n", "", "aGVsbG8=", "\x03", "\x04", "x" * 10_000],
    "stdin": ["hello\n", "", "aGVsbG8=", "x" * 100_000],
    "mode": ["644", "0755", "7777", "-1", "u+x", 0o644, 0o7777, -1, 99999],
}
_PATH_LIKE = re.compile(
    r"path|dir$|directory|^(cwd|file|source|destination|target|root|to|from|link|name)$", re.IGNORECASE
)
_ADDRESS_LIKE = re.compile(r"url$|^repository$|uri", re.IGNORECASE)
_EXPRESSION_LIKE = re.compile(r"pattern|regex|glob|query|include|exclude|log", re.IGNORECASE)
_TIME_LIKE = re.compile(r"timeout|interval|wait|seconds|ms$|grace|lease", re.IGNORECASE)
_NEEDED = re.compile(
    r"path|^(command|content|data|id|terminalId|repoUrl|url|dir|edits|paths|message|name|cwd|set|pattern|old|new|oldText|newText)$",
    re.IGNORECASE,
)
_ID_LIKE = re.compile(r"id$", re.IGNORECASE)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["", " ", "\ud800", "\0", "x" * 70_000, -1, 0, 10**30, 1e308, -0.0, 2**53, 2**63, 2**64]
    )
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


class Use(NamedTuple):
    """What an endpoint does with what it is told."""

    reads: bool
    lasting: bool
    kind: str


class Values:
    """Values for the fields of one description. `learned` are ids that the runtime has given."""

    def __init__(self, schemas: Json, *, learned: Mapping[str, list[str]], workspace: str) -> None:
        self._schemas = schemas
        self._learned = learned
        self._addresses = [f"file://{workspace}/repository", f"{workspace}/repository", *ADDRESSES]

    def body(self, schema: Json, *, use: Use) -> Strategy:
        return self._of(schema, name="", use=use)

    def field(self, name: str, schema: Json, *, use: Use) -> Strategy:
        return self._of(schema, name=name, use=use)

    def id(self, kind: str) -> Strategy:
        """`kind` is what the path calls it: process, session, terminal, files."""
        known = self._learned[kind]
        learned = st.integers(0, 9).map(lambda at: known[-1 - at] if at < len(known) else NAMES[0])
        return mostly(st.sampled_from(NAMES) | learned, st.sampled_from(ODD_NAMES))

    def _of(self, schema: Json, *, name: str, use: Use) -> Strategy:
        if reference := schema.get("$ref"):
            schema = self._schemas[reference.rpartition("/")[2]]
        if variants := schema.get("anyOf") or schema.get("oneOf"):
            given = [each for each in variants if each.get("type") != "null"]
            right = st.one_of([self._of(each, name=name, use=use) for each in given])
            return right if len(given) == len(variants) else mostly(right, st.none())
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        match schema.get("type"):
            case "object":
                return self._object(schema, use=use)
            case "array":
                items = self._of(schema.get("items", {}), name=name, use=use)
                return st.lists(items, min_size=1, max_size=4) | st.lists(items, max_size=1)
            case "string":
                return self._text(name, use=use)
            case "integer" | "number":
                return _numbers(schema, name=name)
            case other:
                return {"boolean": st.booleans(), "null": st.none()}.get(str(other), ANYTHING)

    def _object(self, schema: Json, *, use: Use) -> Strategy:
        fields: dict[str, Strategy] = {
            name: self._of(field, name=name, use=use) for name, field in schema.get("properties", {}).items()
        }
        if not fields:
            inner: Any = schema.get("additionalProperties")
            values = self._of(inner, name="", use=use) if inner else ANYTHING
            odd = st.sampled_from(["", "1", "A=B", "SANDPOD_X", "ä", "a\0b"])
            keys = mostly(st.sampled_from(["A", "FUZZED", "B_1"]), odd)
            return st.dictionaries(keys, values, max_size=3)
        return _some(fields, always=schema.get("required", []))

    def _text(self, name: str, *, use: Use) -> Strategy:
        if name in ("command", "cmd"):
            return st.sampled_from(LASTING if use.lasting else COMMANDS)
        if name in FIXED:
            right, *wrong = [str(each) for each in FIXED[name]]
            return st.just(right) | mostly(st.just(right), st.sampled_from(wrong or [right]))
        if _ADDRESS_LIKE.search(name):
            return mostly(st.just(self._addresses[0]), st.sampled_from(self._addresses))
        if name == "cwd":
            usual = ["repository"] if use.kind == "git" else ["sub", "."]
            return mostly(st.sampled_from(usual), paths(reads=use.reads))
        if _PATH_LIKE.search(name):
            return paths(reads=use.reads)
        if _EXPRESSION_LIKE.search(name):
            return mostly(st.sampled_from(EXPRESSIONS[:6]), st.sampled_from(EXPRESSIONS))
        if _ID_LIKE.search(name):
            return self.id(use.kind if name == "id" else name.removesuffix("Id"))
        return mostly(st.sampled_from([*NAMES, "utf-8"]), st.text("abc -\n\0ä", max_size=12))


@st.composite
def _some(draw: Any, fields: dict[str, Strategy], *, always: list[str]) -> Json:
    """What is required, or is by its name, is rarely missing; of the rest there is a little."""
    found: Json = {}
    for name, values in fields.items():
        needed = name in always or _NEEDED.search(name)
        if not rarely(draw, 20) if needed else rarely(draw, 4):
            found[name] = draw(values)
    return found


def paths(*, reads: bool) -> Strategy:
    return mostly(
        st.sampled_from(FILES) | st.sampled_from(PATHS),
        st.sampled_from(BAD_PATHS + (SYSTEM_PATHS if reads else [])),
    )


def rarely(draw: Any, times: int) -> bool:
    """Once in so many times. The ends of a range come more often than the rest."""
    return draw(st.integers(0, times - 1)) == times // 2


@st.composite
def mostly(draw: Any, right: Strategy, wrong: Strategy) -> Any:
    """A request has many fields, and one that is wrong decides how it ends."""
    return draw(wrong if rarely(draw, 25) else right)


def _numbers(schema: Json, *, name: str) -> Strategy:
    if name in FIXED:
        return st.sampled_from([each for each in FIXED[name] if isinstance(each, int)] or [0])
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if _TIME_LIKE.search(name):
        # A long wait would be no fault of the runtime's.
        return st.sampled_from([each for each in (1, 20, 100, 200) if (low or 0) <= each] or [low])
    likely = [0, 1, 2, 3, 10, 80, 24, 1000, 65_536, -1]
    likely += [each for each in (low, high) if each is not None]
    within = [each for each in likely if (low is None or each >= low) and (high is None or each <= high)]
    return st.sampled_from(within or [low or high or 0])
