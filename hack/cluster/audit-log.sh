#!/usr/bin/env bash
# The API server's audit log, one JSON object per line: every write, by whom, to what. It stays in the node, because on
# the host it would be a file of root's.
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec docker exec "$SANDPOD_CLUSTER-control-plane" cat /kind/audit/log/audit.log
