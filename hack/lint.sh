#!/usr/bin/env bash
# Every check that needs no cluster and runs no test.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cluster/env.sh   # helm, where `make cluster` has brought it
export PATH="$PWD/.venv/bin:$PATH"
ruff format --check --quiet . || { echo "run: make format" >&2; exit 1; }
ruff check --quiet .
lint-imports --no-logo >/dev/null || lint-imports --no-logo
pyright

has() { command -v "$1" >/dev/null || { echo "not checked: $2 ($1 is not installed)" >&2; return 1; }; }
shellcheck=$(command -v shellcheck || hack/tools/debian.sh shellcheck || echo shellcheck)
if has "$shellcheck" "the shell scripts"; then
  git ls-files -z '*.sh' .ci/run gateway/haproxy/run | xargs -0 "$shellcheck" --severity=warning --external-sources
fi
if has helm "the chart"; then
  helm lint --quiet --strict charts/sandpod
  # The branches that the defaults leave out have to render too.
  helm template sandpod charts/sandpod --set certificates.mode=CertManager --set gateway.replicas=2 \
    --set network.dns.nodeLocal=169.254.20.10 --set network.detectEnforcement=false \
    --set gateway.fastPath.enabled=false --set gateway.service.type=LoadBalancer --set previews.mode=Wildcard \
    --set previews.scheme=https >/dev/null
fi
