#!/usr/bin/env bash
# Brings Traefik into the nodes of the cluster, as an image of one file. Prints the image's name.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. hack/cluster/env.sh
binary=$(hack/tools/traefik/build.sh)
image=sandpod/test-traefik:$(cat "$SANDPOD_CACHE/traefik.stamp")
if ! docker image inspect "$image" >/dev/null 2>&1; then
  docker build --quiet --tag "$image" --file - "$(dirname "$binary")" >/dev/null <<'DOCKERFILE'
FROM scratch
COPY traefik /traefik
USER 65532:65532
ENTRYPOINT ["/traefik"]
DOCKERFILE
fi
"${PYTHON:-python3}" -c 'import os, sys
from hack.images.__main__ import load_all
load_all(sys.argv[1:], cluster=os.environ["SANDPOD_CLUSTER"])' "$image"
echo "$image"
