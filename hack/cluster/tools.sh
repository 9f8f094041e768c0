#!/usr/bin/env bash
# tools.sh clients | node: build kind, helm and kubectl as far as they are missing, or all that a node image holds, from
# one pinned Go module (what they share is compiled once), and only when it has changed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export GOFLAGS=-mod=readonly CGO_ENABLED=0
cd "$HERE/tools/node"
k=k8s.io/kubernetes/cmd
c=github.com/containerd/containerd/v2
p=github.com/containernetworking/plugins/plugins
minor=${KUBE_VERSION#v*.} minor=${minor%%.*}
ldflags="-s -w -X $c/version.Version=$CONTAINERD_VERSION -X k8s.io/client-go/pkg/version.gitVersion=$KUBE_VERSION"
for pair in gitVersion=$KUBE_VERSION gitMajor=1 gitMinor="$minor" gitTreeState=clean; do
  ldflags+=" -X k8s.io/component-base/version.$pair"
done

# A kind as new as ours can make a cluster of our node images; helm and kubectl are not that particular.
have() {
  has "$1" || return 1
  [ "$1" = kind ] || return 0
  printf '%s\n' "${KIND_VERSION#v}" "$(kind version -q)" | sort -VC
}
declare -a packages=() missing=()
case $1 in
  clients)
    out=$BIN what="kind, helm and kubectl"
    have kind || { missing+=("kind $KIND_VERSION"); packages+=(sigs.k8s.io/kind); }
    have helm || { missing+=(helm); packages+=(helm.sh/helm/v4/cmd/helm); }
    have kubectl || { missing+=(kubectl); packages+=("$k/kubectl"); }
    [ ${#packages[@]} -gt 0 ] || exit 0
    ;;
  node)
    out=$NODE what="a node's programs: Kubernetes $KUBE_VERSION, etcd, CoreDNS, containerd, runc, CNI plugins"
    missing=("a container registry")
    # Clients are asked whether they are there; a node's programs are there all together or not at all.
    want=$(cat go.mod go.sum coredns/main.go "$HERE/versions.sh" "$HERE/tools.sh" | hash_of)
    [ "$(cat "$out.stamp" 2>/dev/null)" != "$want" ] || exit 0
    rm -f "$out.stamp"
    for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl; do packages+=("$k/$name"); done
    for name in containerd ctr containerd-shim-runc-v2; do packages+=("$c/cmd/$name"); done
    packages+=("$p/main/ptp" "$p/main/loopback" "$p/ipam/host-local" go.etcd.io/etcd/server/v3 ./coredns)
    ;;
esac
has go || die "missing: ${missing[*]}. Install that, or Go 1.21 or later, from which it can be built"

step "building ${what} from Go modules (the first time takes minutes)" \
  "$HERE/go-build.sh" -trimpath -ldflags "$ldflags" -o "$out/" "${packages[@]}"
if [ "$1" = node ]; then
  export CGO_ENABLED=1   # libseccomp is a C library
  step "building runc" "$HERE/go-build.sh" -trimpath -tags seccomp -ldflags "-s -w -X main.version=$RUNC_VERSION" \
    -o "$out/" github.com/opencontainers/runc
  echo "$want" >"$out.stamp"
fi
