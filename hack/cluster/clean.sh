#!/usr/bin/env bash
# Delete the cluster, our images, and all that was cached for them. Go's own caches and the engine stay.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if docker info >/dev/null 2>&1; then
  ! has kind || "$HERE/down.sh"
  docker images --format '{{.Repository}}:{{.Tag}}' 'sandpod/*' | xargs -r docker rmi -f >/dev/null
fi
say "deleting $SANDPOD_CACHE"
rm -rf "$SANDPOD_CACHE"
