r"""What a session's shell is told in order to print its own state, and how that is read.

It is printed by a subshell, whose traps are reset and which may be changed at will. Sections end with NUL,
which no shell can hold in a variable.
"""

# Set by the shell itself, or of no meaning in another one.
_OWN = (
    "_|BASH|BASHOPTS|BASHPID|BASH_A*|BASH_CMDS|BASH_COMMAND|BASH_EXECUTION_STRING|BASH_LINENO|BASH_MONOSECONDS"
    "|BASH_REMATCH|BASH_SOURCE|BASH_SUBSHELL|BASH_TRAPSIG|BASH_VERS*|BASH_XTRACEFD|COMP_WORDBREAKS|COPROC*"
    "|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|OLDPWD|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS"
    "|SHLVL|SRANDOM|UID"
)
BASH = (
    r"""(
\builtin umask -p; \builtin printf '\0'
\builtin shopt -p; \builtin printf '\0'
\builtin set +o; \builtin printf '\0'
\builtin set +efux; \builtin declare -p IFS; \builtin unset -v IFS; \builtin printf '\0'
\builtin printf 'set --'; for REPLY; do \builtin printf ' %q' "$REPLY"; done; \builtin printf '\n\0'
\builtin trap -p; \builtin printf '\0'
\builtin jobs -p; \builtin printf '\0'
for REPLY in $(\builtin compgen -v); do case $REPLY in IFS|REPLY|"""
    + _OWN
    + r""") ;; *) \builtin declare -p "$REPLY";; esac; done; \builtin printf '\0'
\builtin declare -f; \builtin printf '\0'
\builtin declare -F; \builtin printf '\0'
for REPLY in "${!BASH_ALIASES[@]}"; do
\builtin printf '\\builtin alias -- %q=%q\n' "$REPLY" "${BASH_ALIASES[$REPLY]}"
done
\builtin printf '\0'
for REPLY in $(\builtin compgen -e); do \builtin printf '%s=%s\0' "$REPLY" "${!REPLY}"; done
)"""
).encode()
POSIX = b"()"
