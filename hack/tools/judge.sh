#!/usr/bin/env bash
# judge.sh cyclonus | podsecurity: build a program that judges what we make by Kubernetes' rules, from its pinned Go module,
# and only when it has changed. Prints where it is. For tests/unit/operator.
set -euo pipefail
. "$(dirname "$0")/../cluster/lib.sh"
cd "$(dirname "$0")/$1"
out=$SANDPOD_CACHE/judges stamp=$SANDPOD_CACHE/judges/$1.stamp
want=$(cat go.mod go.sum main.go ../judge.sh | hash_of)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  has go || die "missing: Go 1.21 or later, from which $1 can be built"
  rm -f "$stamp"
  mkdir -p "$out"
  export GOFLAGS=-mod=readonly CGO_ENABLED=0
  step "building the judge $1 from its Go module (about a minute)" \
    "$HERE/go-build.sh" -trimpath -ldflags "-s -w" -o "$out/" .
  echo "$want" >"$stamp"
fi
echo "$out/$1"
