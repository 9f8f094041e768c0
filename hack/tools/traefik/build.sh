#!/usr/bin/env bash
# Builds Traefik, an ingress controller, from its pinned Go module; only when it has changed. Prints where it is.
# For tests/e2e, which put it between browsers and the gateway.
set -euo pipefail
. "$(dirname "$0")/../../cluster/lib.sh"
cd "$(dirname "$0")"
out=$SANDPOD_CACHE/traefik
want=$(cat go.mod go.sum build.sh | hash_of)
if [ "$(cat "$out.stamp" 2>/dev/null)" != "$want" ]; then
  has go || die "missing: Go 1.21 or later, from which Traefik can be built"
  rm -f "$out.stamp"
  mkdir -p "$out"
  export GOFLAGS=-mod=readonly CGO_ENABLED=0
  step "building Traefik from its Go module (about five minutes)" \
    "$HERE/go-build.sh" -trimpath -ldflags "-s -w" -o "$out/" github.com/traefik/traefik/v3/cmd/traefik
  echo "$want" >"$out.stamp"
fi
echo "$out/traefik"
