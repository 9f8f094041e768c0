"""The npm client that others publish for the runtime's protocol: brought once, and run against an address."""

import asyncio
import json
import os
import re
from pathlib import Path

from tests.support.packages import node_modules

HERE = Path(__file__).parents[1] / "runtime" / "published_client"
SCENARIOS = re.findall(
    r'^  async "(.+)"\(', (HERE / "scenarios.mjs").read_text(encoding="utf-8"), re.MULTILINE
)


async def outcomes(url: str, *, workspace: str, token: str = "") -> dict[str, str]:
    """What went wrong in each scenario; an empty text for one that went well."""
    found = await asyncio.to_thread(node_modules, HERE)
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
