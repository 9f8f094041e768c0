#!/usr/bin/env bash
# Install or upgrade Sandpod in the cluster of `make cluster`, from the images of `make images`. Options go to Helm.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cluster/env.sh
namespace=sandpod-system
[ -e build/images.yaml ] || { echo "no build/images.yaml: run make images" >&2; exit 1; }

start=$SECONDS
# Our own pods keep the strictest of Kubernetes' pod security standards; here the API server holds us to it.
kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
  labels: {pod-security.kubernetes.io/enforce: restricted}
END
# A run that was interrupted leaves a revision pending, and Helm would refuse to make another one.
if [ -n "$(helm list --namespace "$namespace" --pending --short)" ]; then
  echo "an earlier install did not end: taking it back" >&2
  helm rollback sandpod --namespace "$namespace" >/dev/null || helm uninstall sandpod --namespace "$namespace" >/dev/null
fi
# kind maps a port of this machine to this NodePort, so that preview URLs open here as they are, without an ingress
# controller.
web=(--set gateway.service.type=NodePort --set gateway.service.nodePort=30080)
mapped=$(docker port "$SANDPOD_CLUSTER-control-plane" 30080/tcp 2>/dev/null | head -n 1 || true)
[ -z "$mapped" ] || web+=(--set "previews.port=${mapped##*:}")
helm upgrade sandpod charts/sandpod --install --namespace "$namespace" --values build/images.yaml "${web[@]}" \
  --wait --timeout 120s "$@" >/dev/null
helm=$((SECONDS - start))
kubectl wait apiservice/v1alpha1.run.sandpod.dev --for=condition=Available --timeout=60s >/dev/null
echo "Sandpod is ready in $namespace: helm took $helm s, all together $((SECONDS - start)) s" >&2
