# shellcheck shell=bash
# Sourced by every script here: settings, versions, and the way to say what happens and how long it took.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/env.sh"
. "$HERE/versions.sh"
LOG=$SANDPOD_CACHE/cluster.log
BIN=$SANDPOD_CACHE/bin     # for people: kind, helm, kubectl
NODE=$SANDPOD_CACHE/node   # for the node image; never on PATH, where dockerd would take its containerd for its own
mkdir -p "$BIN" "$NODE"


# What a person reads goes to descriptor 3 as the outermost script opened it: inside a step, 1 and 2 are the log.
if [ -z "${SANDPOD_SAYING:-}" ]; then
  exec 3>&2
  export SANDPOD_SAYING=1
fi
say() { printf '%s  %s\n' "$(date +%T)" "$*" | tee -a "$LOG" >&3; }
die() { say "$*"; exit 1; }

# step TITLE COMMAND…: run it with its output in the log, say how long it took, or show the log's end and stop.
# The command is a program, not a function: bash ignores `set -e` in a function that is called from an `if`.
step() {
  local title=$1 start=$SECONDS before; shift
  say "$title"
  before=$(wc -l <"$LOG")
  if "$@" >>"$LOG" 2>&1; then
    [ $((SECONDS - start)) -lt 2 ] || say "  took $((SECONDS - start)) s"
  else
    tail -n +$((before + 1)) "$LOG" | tail -n 15 | sed 's/^/    /' >&3
    die "failed: $title (all of the log: $LOG)"
  fi
}

# limited SECONDS COMMAND…: macOS has no timeout(1); there the command's own limits must do.
limited() { if command -v timeout >/dev/null; then timeout "$@"; else shift; "$@"; fi; }
has() { command -v "$1" >/dev/null; }
hash_of() { sha256sum | cut -c1-12; }
