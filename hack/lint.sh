#!/usr/bin/env bash
# Every check that needs no cluster and runs no test.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
ruff format --check --quiet . || { echo "run: make format" >&2; exit 1; }
ruff check --quiet .
lint-imports --no-logo >/dev/null || lint-imports --no-logo
pyright
