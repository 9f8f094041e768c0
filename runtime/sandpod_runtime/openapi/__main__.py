"""`python -m sandpod_runtime.openapi`: write docs/reference/runtime-api.md (`make generate`)."""

import asyncio
import sys
from pathlib import Path

from sandpod_runtime.openapi.document import document
from sandpod_runtime.openapi.generate import PAGE, routes_of_a_runtime
from sandpod_runtime.openapi.page import page


def main() -> int:
    path = Path.cwd() / PAGE
    if not (Path.cwd() / "pyproject.toml").is_file():
        sys.stderr.write("run this in the root of the repository\n")
        return 2
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(document(asyncio.run(routes_of_a_runtime()))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
