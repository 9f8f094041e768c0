#!/usr/bin/env bash
# Delete the cluster, our images, and all that was cached for them. Go's own caches and the engine stay.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if docker info >/dev/null 2>&1; then
  ! has kind || "$HERE/down.sh"
  docker images --format '{{.Repository}}:{{.Tag}}' 'sandpod/*' | xargs -r docker rmi -f >/dev/null
fi
say "deleting what was cached in $SANDPOD_CACHE"
# By name, and the directory only when that leaves it empty: SANDPOD_CACHE may be somebody's home.
cd "$SANDPOD_CACHE"
rm -rf bin judges kwok kwok.stamp traefik traefik.stamp debian node node-rootfs-*.tar node.stamp tools.stamp audit-policy.yaml images.lock images.log dockerd.log
rm -f "$KUBECONFIG" lock cluster.log
cd / && rmdir --ignore-fail-on-non-empty "$SANDPOD_CACHE"
