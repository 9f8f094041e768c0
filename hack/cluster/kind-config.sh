#!/usr/bin/env bash
# kind-config.sh published|built WORKERS AUDIT_POLICY SHARED: kind's configuration. Pure: it only prints.
set -euo pipefail
# Well-known for the first cluster; one beside it gets ports that are free: `docker port NAME-control-plane`.
http=8080 https=8443
[ "${SANDPOD_CLUSTER:-sandpod}" = sandpod ] || http=0 https=0
# One directory for all nodes stands in for storage on the network: a volume in it can move to another node.
shared="{hostPath: \"$4\", containerPath: /kind/shared}"
cat <<YAML
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  kubeProxyMode: nftables
$([ "$1" = published ] || echo "  disableDefaultCNI: true   # network.sh: kind's own cannot be built")
# Asked each second, as is the default, for what they use, 200 waiting pods cost half a core for nothing else.
containerdConfigPatches:
- |
  [plugins."io.containerd.cri.v1.runtime"]
  stats_collect_period = "30s"
kubeadmConfigPatches:
- |
  kind: KubeletConfiguration
  failCgroupV1: false
  maxPods: 250   # a warm pool for a storm of claims is many small pods
# Two cores are shared by all of Kubernetes and what is measured; there is memory to spend on collecting garbage less often.
- |
  kind: ClusterConfiguration
  apiServer: {extraEnvs: [{name: GOGC, value: "400"}]}
  controllerManager: {extraEnvs: [{name: GOGC, value: "400"}]}
  etcd: {local: {extraEnvs: [{name: GOGC, value: "400"}]}}
# Who wrote what, for tests and the benchmark that count API writes (audit-log.sh). RFC 6902, as a merge would replace
# the arguments that kind itself gives.
kubeadmConfigPatchesJSON6902:
- group: kubeadm.k8s.io
  version: v1beta4
  kind: ClusterConfiguration
  patch: |
    - {op: add, path: /apiServer/extraArgs/-, value: {name: audit-policy-file, value: /kind/audit/policy.yaml}}
    - {op: add, path: /apiServer/extraArgs/-, value: {name: audit-log-path, value: /kind/audit/log/audit.log}}
    - {op: add, path: /apiServer/extraArgs/-, value: {name: audit-log-maxsize, value: "100"}}
    - {op: add, path: /apiServer/extraArgs/-, value: {name: audit-log-maxbackup, value: "1"}}
    - op: add
      path: /apiServer/extraVolumes
      value:
      - {name: audit, hostPath: /kind/audit, mountPath: /kind/audit, pathType: DirectoryOrCreate}
nodes:
- role: control-plane
  extraMounts:
  - {hostPath: "$3", containerPath: /kind/audit/policy.yaml, readOnly: true}$([ "$2" = 0 ] || printf '\n  - %s' "$shared")
  extraPortMappings:   # the gateway's node port (install.sh) and an ingress controller's: preview URLs open in this machine's browser
  - {containerPort: 30080, hostPort: ${SANDPOD_HTTP_PORT:-$http}, listenAddress: 127.0.0.1}
  - {containerPort: 30443, hostPort: ${SANDPOD_HTTPS_PORT:-$https}, listenAddress: 127.0.0.1}
YAML
for ((i = 0; i < $2; i++)); do printf -- '- role: worker\n  extraMounts:\n  - %s\n' "$shared"; done
