#!/usr/bin/env bash
# The developer's environment, .venv: exactly what requirements/dev.lock says, and this project editable.
# Done again only when the lock file, the project's metadata or the interpreter changes.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
want=$(cat requirements/dev.lock pyproject.toml <("$python" -c 'import sys; print(sys.version, sys.executable)') | sha256sum | cut -d' ' -f1)
[ "$(cat .venv/stamp 2>/dev/null)" = "$want" ] && exit 0
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sandpod needs Python 3.11 or later; set PYTHON=…" >&2; exit 1; }
echo "making .venv from requirements/dev.lock" >&2
"$python" -m venv --clear .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
echo "$want" > .venv/stamp
