#!/usr/bin/env bash
# Where the cluster's programs and its kubeconfig are. Shell scripts source it; others read `env.sh --print`,
# lines of KEY=value. The user's own KUBECONFIG is left alone, so that no test ever runs against another cluster.
SANDPOD_CACHE=${SANDPOD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandpod}
SANDPOD_CLUSTER=${SANDPOD_CLUSTER:-sandpod}
KUBECONFIG=$SANDPOD_CACHE/kubeconfig
[ "$SANDPOD_CLUSTER" = sandpod ] || KUBECONFIG+=-$SANDPOD_CLUSTER
case ":$PATH:" in *":$SANDPOD_CACHE/bin:"*) ;; *) PATH="$SANDPOD_CACHE/bin:$PATH" ;; esac
export SANDPOD_CACHE SANDPOD_CLUSTER KUBECONFIG PATH

if [ "${1:-}" = --print ] && [ "${BASH_SOURCE[0]}" = "$0" ]; then
  for name in SANDPOD_CACHE SANDPOD_CLUSTER KUBECONFIG PATH; do printf '%s=%s\n' "$name" "${!name}"; done
fi
