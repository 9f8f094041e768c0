#!/usr/bin/env bash
# Pin every dependency with its hashes: one file for the developer, one for each image, all at the same versions.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() { # name, where the requirements are read from, more options
  local name=$1 source=$2; shift 2
  .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --no-annotate --custom-compile-command 'make lock' "$@" -o "requirements/$name.lock" "$source"
}
extra() { # what a room needs of others, without the SDK's own dependencies
  .venv/bin/python -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]
print("\n".join(p["optional-dependencies"][sys.argv[1]]))' "$1"
}
compile dev pyproject.toml --extra dev
for room in operator gateway runtime; do extra "$room" | compile "$room" - -c requirements/dev.lock; done
