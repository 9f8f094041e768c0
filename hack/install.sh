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
helm upgrade sandpod charts/sandpod --install --namespace "$namespace" --values build/images.yaml \
  --wait --timeout 120s "$@" >/dev/null
helm=$((SECONDS - start))
kubectl wait apiservice/v1alpha1.run.sandpod.dev --for=condition=Available --timeout=60s >/dev/null
echo "Sandpod is ready in $namespace: helm took $helm s, all together $((SECONDS - start)) s" >&2
