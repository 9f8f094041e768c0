#!/usr/bin/env bash
# Which node image to use, printed as `published IMAGE` or `built IMAGE`; the latter is built if it is not there.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
inputs=$(cat "$HERE"/node/* "$HERE"/tools/node/{go.mod,go.sum,coredns/main.go} "$HERE"/{versions,tools}.sh | hash_of)
built=sandpod/node:$KUBE_VERSION-$inputs
here() { docker image inspect "$1" >/dev/null 2>&1; }

# What is here needs no question; else a registry is asked, and only where none answers is a node built.
source=${SANDPOD_NODE:-}
if [ -z "$source" ]; then
  if here "$PUBLISHED_NODE"; then source=published
  elif here "$built"; then source=built
  elif limited 15 docker manifest inspect "$PUBLISHED_NODE" >/dev/null 2>&1; then source=published
  else
    say "no container registry answers: the node will be built from Debian's packages and Go modules"
    source=built
  fi
fi
if [ "$source" = published ]; then
  here "$PUBLISHED_NODE" || step "pulling ${PUBLISHED_NODE%@*}" docker pull -q "$PUBLISHED_NODE"
  echo "published $PUBLISHED_NODE"
  exit
fi
if ! here "$built"; then
  step "looking for what the build needs from Debian" "$HERE/packages.sh"
  "$HERE/tools.sh" node
  rootfs=$SANDPOD_CACHE/node-rootfs-$(cat "$HERE/node/rootfs.sh" "$HERE/versions.sh" | hash_of).tar
  if [ ! -e "$rootfs" ]; then
    rm -f "$SANDPOD_CACHE"/node-rootfs*.tar   # of another version
    step "making the node's root file system from Debian's packages" "$HERE/node/rootfs.sh" "$rootfs"
  fi
  step "building the node image" "$HERE/node/image.sh" "$built" "$rootfs"
  # Older ones, 1 GB each; one that a cluster still runs on stays.
  docker images --format '{{.Repository}}:{{.Tag}}' sandpod/node | grep -vxF "$built" | xargs -r docker rmi >/dev/null 2>&1 || true
fi
echo "built $built"
