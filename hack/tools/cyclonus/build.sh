#!/usr/bin/env bash
# Builds the judge of NetworkPolicies (main.go), from its pinned Go module; only when it has changed. Prints where it is.
# For tests/unit/operator/network.
set -euo pipefail
. "$(dirname "$0")/../../cluster/lib.sh"
cd "$(dirname "$0")"
out=$SANDPOD_CACHE/cyclonus
want=$(cat go.mod go.sum main.go build.sh | hash_of)
if [ "$(cat "$out.stamp" 2>/dev/null)" != "$want" ]; then
  has go || die "missing: Go 1.21 or later, from which cyclonus can be built"
  rm -f "$out.stamp"
  mkdir -p "$out"
  export GOFLAGS=-mod=readonly CGO_ENABLED=0
  step "building cyclonus' analyzer from its Go module (about a minute)" \
    "$HERE/go-build.sh" -trimpath -ldflags "-s -w" -o "$out/" .
  echo "$want" >"$out.stamp"
fi
echo "$out/cyclonus"
