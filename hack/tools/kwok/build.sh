#!/usr/bin/env bash
# Builds kwok, which plays nodes and their kubelets, from its pinned Go module; only when it has changed. Prints where it
# is. For tests/bench/scale.
set -euo pipefail
. "$(dirname "$0")/../../cluster/lib.sh"
cd "$(dirname "$0")"
out=$SANDPOD_CACHE/kwok
want=$(cat go.mod go.sum build.sh | hash_of)
if [ "$(cat "$out.stamp" 2>/dev/null)" != "$want" ]; then
  has go || die "missing: Go 1.21 or later, from which kwok can be built"
  rm -f "$out.stamp"
  mkdir -p "$out"
  export GOFLAGS=-mod=readonly CGO_ENABLED=0
  step "building kwok from its Go module (about a minute)" \
    "$HERE/go-build.sh" -trimpath -ldflags "-s -w" -o "$out/" sigs.k8s.io/kwok/cmd/kwok
  echo "$want" >"$out.stamp"
fi
echo "$out/kwok"
