#!/usr/bin/env bash
# A real Kubernetes cluster, from whatever is there to Ready nodes. WORKERS=2 adds nodes.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
start=$SECONDS workers=${WORKERS:-0} cluster=$SANDPOD_CLUSTER node=$SANDPOD_CLUSTER-control-plane
[[ $workers =~ ^[0-9]$ ]] || die "WORKERS=$workers: a number from 0 to 9"
if has flock; then   # two at once would delete each other's cluster
  exec 9>"$SANDPOD_CACHE/lock"
  flock -n 9 || { say "waiting for another run of hack/cluster"; flock 9; }
fi

"$HERE/engine.sh"
choice=$("$HERE/node.sh")
source=${choice% *} image=${choice#* }
"$HERE/tools.sh" clients

# The cluster carries in its node what it was made from, written last: one that was interrupted has nothing there.
# The policy is mounted from the cache: a fresh clone elsewhere must not mean another cluster.
policy=$SANDPOD_CACHE/audit-policy.yaml shared=$SANDPOD_CACHE/shared-$cluster
config=$("$HERE/kind-config.sh" "$source" "$workers" "$policy" "$shared")
want=$(cat - "$HERE"/{audit-policy.yaml,network.sh,storage.sh} <<<"$image $config" | hash_of)
is_ours() { [ "$(limited 5 docker exec "$node" cat /kind/sandpod 2>/dev/null)" = "$want" ]; }
is_healthy() {
  [ -s "$KUBECONFIG" ] || kind export kubeconfig --name "$cluster"
  kubectl get --raw /readyz --request-timeout=5s && kubectl wait --for=condition=Ready node --all --timeout=5s &&
    # What network.sh has told the kernel does not outlive a restart of the node by the engine.
    { [ "$source" = published ] || limited 5 docker exec "$node" nft list table ip podmasq; } &&
    # Without what kube-proxy has told it, pods reach nothing.
    limited 5 docker exec "$node" bash -c 'exec 3<>/dev/tcp/10.96.0.1/443'
}
if docker container inspect "$node" >/dev/null 2>&1; then
  if ! is_ours; then reason="was made from something else, or not finished"
  elif ! is_healthy >>"$LOG" 2>&1; then reason="does not answer"
  else
    say "cluster $cluster is up: $((workers + 1)) node(s); KUBECONFIG=$KUBECONFIG"
    exit
  fi
  step "deleting the cluster $cluster, which $reason" kind delete cluster --name "$cluster"
fi
cp "$HERE/audit-policy.yaml" "$policy"
[ "$workers" = 0 ] || mkdir -p "$shared"
step "creating the cluster $cluster of $((workers + 1)) node(s) from ${image%@*}" \
  kind create cluster --name "$cluster" --image "$image" --config - <<<"$config"
if [ "$source" = built ]; then
  step "connecting the pods" "$HERE/network.sh"
  step "opening the volumes" "$HERE/storage.sh"
fi
step "waiting for nodes" kubectl wait --for=condition=Ready node --all --timeout=120s
step "waiting for DNS" kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=120s
docker exec -i "$node" sh -c 'cat > /kind/sandpod' <<<"$want"
say "cluster $cluster is ready after $((SECONDS - start)) s; KUBECONFIG=$KUBECONFIG; log: $LOG"
