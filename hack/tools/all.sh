#!/usr/bin/env bash
# What tests build or fetch when they first need it, all at once and before any test's time runs: says what it does. What
# cannot be had here is left out; its tests are skipped then, or say what they miss.
set -euo pipefail
cd "$(dirname "$0")"
for tool in "traefik/build.sh" "judge.sh cyclonus" "judge.sh podsecurity" "chromium.sh" "debian.sh haproxy"; do
  # shellcheck disable=SC2086
  ./$tool >/dev/null || echo "not there: ${tool%.sh*}" >&2
done
