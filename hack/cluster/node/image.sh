#!/usr/bin/env bash
# image.sh TAG ROOTFS: a kind node image that holds the control plane's images, from what tools.sh has built.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
here=$HERE/node tag=$1
kind_files=$(cd "$HERE/tools/node" && go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
builder=sandpod-node-build base=sandpod/node-base:build
ctx=$(mktemp -d -p "$SANDPOD_CACHE")
cleanup() { rm -rf "$ctx"; docker rm -f $builder >/dev/null 2>&1 || true; }
trap cleanup EXIT

mkdir "$ctx"/{bin,kube,cni}
cp -r "$kind_files" "$ctx/files"
chmod -R u+w "$ctx/files"
ln "$2" "$ctx/rootfs.tar"
ln "$NODE"/{containerd,ctr,containerd-shim-runc-v2,runc} "$ctx/bin/"
ln "$NODE"/{kubeadm,kubelet,kubectl} "$ctx/kube/"
ln "$NODE"/{ptp,loopback,host-local} "$ctx/cni/"
docker build -q --build-arg "KUBE_VERSION=$KUBE_VERSION" -t $base -f "$here/node.Dockerfile" "$ctx"

# The control plane's images, under the names that kubeadm asks for.
declare -A image=([pause]=$PAUSE_IMAGE)
while read -r reference; do
  name=${reference##*/}
  [ "${name%%:*}" = pause ] || image[${name%%:*}]=$reference
done < <("$NODE/kubeadm" config images list --kubernetes-version "$KUBE_VERSION")
scratch() { # image, file, the name it runs under
  local dir=$ctx/$3
  mkdir "$dir"
  ln "$2" "$dir/$3"
  printf 'FROM scratch\nCOPY %s /usr/local/bin/\nENV PATH=/usr/local/bin\nENTRYPOINT ["/usr/local/bin/%s"]\n' "$3" "$3" |
    docker build -q -t "$1" -f - "$dir"
}
for name in kube-apiserver kube-controller-manager kube-scheduler coredns; do scratch "${image[$name]}" "$NODE/$name" "$name"; done
scratch "${image[etcd]}" "$NODE/server" etcd
gcc -O2 -static -o "$ctx/pause.bin" "$here/pause.c"
scratch "${image[pause]}" "$ctx/pause.bin" pause
mkdir "$ctx/proxy"
ln "$NODE/kube-proxy" "$ctx/proxy/"
docker build -q --build-arg NODE_BASE=$base -t "${image[kube-proxy]}" -f "$here/kube-proxy.Dockerfile" "$ctx/proxy"
docker save "${image[@]}" -o "$ctx/images.tar"

# containerd cannot unpack on an overlay inside an overlay: imported without, the node unpacks at first use.
docker rm -f $builder >/dev/null 2>&1 || true
docker run -d --privileged --name $builder -v "$ctx/images.tar:/images.tar:ro" --entrypoint sleep $base infinity
docker exec -d $builder containerd
for _ in $(seq 100); do
  docker exec $builder ctr version >/dev/null 2>&1 && break
  sleep 0.1
done
docker exec $builder ctr -n k8s.io images import --no-unpack --local /images.tar
docker exec $builder sh -c 'pid=$(pidof containerd) && kill $pid && while [ -d /proc/$pid ]; do sleep 0.1; done'
docker commit -c 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' $builder "$tag"

# The engine needs none of these any more, the node image holds them.
docker rm -f $builder
docker rmi "${image[@]}" $base >/dev/null 2>&1 || true
