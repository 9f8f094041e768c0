r"""What a session's shell is told in order to print its own state, and the script that is made of the answer.

It is printed by a subshell, whose traps are reset and which may be changed at will. Sections end with NUL,
which no shell can hold in a variable.
"""

import contextlib
import os
import re
from collections.abc import Iterable

from sandpod_runtime.process import procfs
from sandpod_runtime.process.leader import Leader
from sandpod_runtime.session import exports

# Set by the shell itself, or of no meaning in another one.
_OWN = (
    "_|BASH|BASHOPTS|BASHPID|BASH_A*|BASH_CMDS|BASH_COMMAND|BASH_EXECUTION_STRING|BASH_LINENO"
    "|BASH_MONOSECONDS|BASH_REMATCH|BASH_SOURCE|BASH_SUBSHELL|BASH_TRAPSIG|BASH_VERS*|BASH_XTRACEFD"
    "|COMP_WORDBREAKS|COPROC*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|OLDPWD|PIPESTATUS|PPID|PWD"
    "|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID"
)
_SECTIONS = 9
# "set +o" and "shopt -p" also print what no shell lets itself be told.
_FIXED = re.compile(rb" (?:login_shell|restricted_shell|history|emacs|vi)$")
BASH = (
    r"""(
\builtin umask -p; \builtin shopt -p; \builtin printf '\0'
\builtin set +o; \builtin printf '\0'
\builtin set +efuxv; \builtin declare -p IFS; \builtin unset -v IFS; \builtin printf '\0'
\builtin printf 'set --'; for REPLY; do \builtin printf ' %q' "$REPLY"; done; \builtin printf '\n\0'
\builtin trap -p; \builtin printf '\0'
for REPLY in $(\builtin compgen -v); do case $REPLY in IFS|REPLY|"""
    + _OWN
    + r""") ;;
*) \builtin declare -p "$REPLY";; esac; done; \builtin printf '\0'
\builtin declare -f; \builtin printf '\0'
\builtin declare -F; \builtin printf '\0'
for REPLY in "${!BASH_ALIASES[@]}"; do
\builtin printf '\\builtin alias -- %q=%q\n' "$REPLY" "${BASH_ALIASES[$REPLY]}"
done
for ((REPLY = ${#DIRSTACK[@]} - 1; REPLY > 0; REPLY--)); do
\builtin printf '\\builtin pushd -n -- %q >/dev/null\n' "${DIRSTACK[REPLY]}"
done; \builtin printf '\0'
)"""
).encode()
POSIX = rb"""(
unset -f command printf umask alias
umask; printf '\0'
set +o; printf '\0'
set +e +f +u +x +v
set; printf '\0'
readonly -p; printf '\0'
alias; printf '\0'
printf '%s\0' "$@"
)"""
_POSIX_SECTIONS = 5
_POSIX_OWN = frozenset(
    (b"_", b"PWD", b"OLDPWD", b"PPID", b"LINENO", b"SHLVL", b"OPTIND", b"RANDOM", b"BASH_VERSION")
)
_POSIX_VARIABLE = re.compile(rb"^(?:readonly )?([A-Za-z_][A-Za-z0-9_]*)(=?)", re.MULTILINE)
_POSIX_ALIAS = re.compile(rb"^(?:alias )?([^\s='\"`$\\/]+)=", re.MULTILINE)

# A shell's state, as the script that makes another one like it, and what that leaves out.
State = tuple[bytes, list[str]]


class NoStateError(Exception):
    """The shell has not told its state."""


def of_bash(output: bytes) -> State:
    sections = output.split(b"\0")
    if len(sections) <= _SECTIONS:
        raise NoStateError
    shopt, options, ifs, arguments, traps, variables, functions, marked, aliases = sections[:_SECTIONS]
    script = b"".join(
        (
            # Before the functions, which may need them to be understood (extglob), and may be called as they
            # are.
            _told(shopt),
            variables,
            ifs,
            functions,
            _told(b"\n".join(line for line in marked.splitlines() if not line.startswith(b"declare -f "))),
            # After them, which were printed without them.
            aliases,
            _told(arguments),
            # Last of all, or `set -e` and `set -u` would judge this script.
            _told(options),
        )
    )
    names = b", ".join(re.findall(rb"^trap -- .* (\S+)$", traps, re.MULTILINE))
    return script, [f"traps: {names.decode('ascii', 'replace')}"] if names else []


def of_posix(output: bytes) -> State:
    sections = output.split(b"\0")
    if len(sections) <= _POSIX_SECTIONS:
        raise NoStateError
    mask, options, variables, fixed, aliases, *arguments = sections
    lines = [b"umask " + mask.strip()]
    lines += (
        b"%s=%s" % (name, quoted)
        for name, quoted in _words(variables, _POSIX_VARIABLE)
        if name not in _POSIX_OWN
    )
    lines += (
        b"readonly " + match[1]
        for match in _POSIX_VARIABLE.finditer(fixed)
        if match[0].startswith(b"readonly ") and match[1] not in _POSIX_OWN
    )
    lines += (b"alias %s=%s" % pair for pair in _words(aliases, _POSIX_ALIAS))
    lines.append(b" ".join((b"set --", *(_quoted(argument) for argument in arguments[:-1]))))
    lines.append(_told(options, prefix=b""))
    return b"\n".join(lines) + b"\n", ["functions and traps: this shell cannot list them"]


def _told(lines: bytes, *, prefix: bytes = b"\\builtin ") -> bytes:
    return b"".join(prefix + line + b"\n" for line in lines.splitlines() if line and not _FIXED.search(line))


def _words(text: bytes, pattern: re.Pattern[bytes]) -> Iterable[tuple[bytes, bytes]]:
    at = 0
    while line := pattern.search(text, at):
        value, at = exports.word(text, line.end())
        yield line[1], _quoted(value)


def _quoted(value: bytes) -> bytes:
    return b"'" + value.replace(b"'", b"'\\''") + b"'"


def limits(pid: int) -> set[bytes]:
    """The resource limits of a process, a line each."""
    try:
        return set(procfs.read(f"/proc/{pid}/limits").splitlines())
    except OSError:
        return set()


def left_behind(leader: Leader, *, began_with: set[bytes]) -> list[str]:
    """What is not in a shell's state, but with it. `began_with` are its limits."""
    found = _left_open(leader.pid)
    if changed := [line[:25].decode().strip() for line in limits(leader.pid) - began_with]:
        found.append(f"limits: {', '.join(sorted(changed))}")
    if count := leader.has_started():
        found.append(f"processes in the background: {count}")
    return found


def _left_open(pid: int) -> list[str]:
    """Descriptors that commands left open for later ones. The shell's own are closed on exec."""
    root = f"/proc/{pid}"
    found: list[int] = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{root}/fd"):  # noqa: PTH208
            flags = procfs.read(f"{root}/fdinfo/{name}").partition(b"flags:")[2].split(None, 1)[0]
            if int(name) > 2 and not int(flags, 8) & os.O_CLOEXEC:
                found.append(int(name))
    return [f"open descriptors: {', '.join(map(str, sorted(found)))}"] if found else []
