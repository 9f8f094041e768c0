#!/usr/bin/env bash
# Delete the cluster. Caches and images stay, so that the next one is there in seconds.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
docker info >/dev/null 2>&1 || die "no Docker Engine answers: no cluster to delete"
has kind || die "no kind: no cluster of ours to delete"
# By a node, which is root: pods of any user may have written there.
docker exec "$SANDPOD_CLUSTER-control-plane" sh -c 'rm -rf /kind/shared/*' >>"$LOG" 2>&1 || true
step "deleting the cluster $SANDPOD_CLUSTER" kind delete cluster --name "$SANDPOD_CLUSTER"
rm -f "$KUBECONFIG"
[ ! -d "$SANDPOD_CACHE/shared-$SANDPOD_CLUSTER" ] || rmdir --ignore-fail-on-non-empty "$SANDPOD_CACHE/shared-$SANDPOD_CLUSTER"
