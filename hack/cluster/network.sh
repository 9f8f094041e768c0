#!/usr/bin/env bash
# The pod network of built nodes: a wire from the node to each of its pods, and on every node a route to the others' pods.
# No bridge: it gives each question for an address to all pods, and from about 200 on the kernel drops some of that.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
# The controller manager hands out pod CIDRs a moment after the nodes have registered.
kubectl wait node --all --for=jsonpath='{.spec.podCIDR}' --timeout=60s
nodes=$(kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}')
while read -r node cidr _; do
  {
    while read -r other other_cidr address; do
      [ "$other" = "$node" ] || echo "ip route replace $other_cidr via $address"
    done <<<"$nodes"
    # One masquerade rule for the node: the plugin's ipMasq would run iptables for every pod, 50 ms each.
    cat <<SCRIPT
nft -f - <<NFT
table ip podmasq
delete table ip podmasq
table ip podmasq {
  chain post {
    type nat hook postrouting priority srcnat;
    ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade
  }
}
NFT
cat > /etc/cni/net.d/10-pods.conflist.part <<JSON
{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "$cidr"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
JSON
mv /etc/cni/net.d/10-pods.conflist.part /etc/cni/net.d/10-pods.conflist
SCRIPT
  } | docker exec -i "$node" sh -e
done <<<"$nodes"
