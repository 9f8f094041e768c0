#!/usr/bin/env bash
# Build our images, bring them into the cluster's nodes, write build/images.yaml.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/cluster/env.sh
exec "${PYTHON:-python3}" -m hack.images
