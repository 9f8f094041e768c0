"""The npm client that others publish for the runtime's protocol: brought once, and run against an address."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parents[1] / "runtime" / "published_client"
SCENARIOS = re.findall(
    r'^  async "(.+)"\(', (HERE / "scenarios.mjs").read_text(encoding="utf-8"), re.MULTILINE
)


def modules() -> Path:
    """The client's modules, brought once for each lock file."""
    lock = HERE / "package-lock.json"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = caches / "sandpod" / f"npm-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not (place / "complete").exists():
        place.mkdir(parents=True, exist_ok=True)
        for file in (HERE / "package.json", lock):
            shutil.copy(file, place)
        command = ["npm", "ci", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=240)
        (place / "complete").touch()
    return place / "node_modules"


async def outcomes(url: str, *, workspace: str, token: str = "") -> dict[str, str]:
    """What went wrong in each scenario; an empty text for one that went well."""
    found = await asyncio.to_thread(modules)
    process = await asyncio.create_subprocess_exec(
        "node",
        # A client of WebSockets, which later versions of Node have without being asked
        "--experimental-websocket",
        str(HERE / "run.mjs"),
        url,
        str(found),
        workspace,
        env={**os.environ, "SANDPOD_TOKEN": token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        printed, errors = await asyncio.wait_for(process.communicate(), 180)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = [json.loads(line) for line in printed.decode().splitlines() if line.startswith("{")]
    assert lines, errors.decode()
    return {line["name"]: line.get("error", "") for line in lines}
