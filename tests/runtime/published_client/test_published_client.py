"""The npm client that others publish for this protocol, unchanged, against a real runtime.

Only its platform is ours (platform.mjs): a place to keep settings, and one container, which is the runtime.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runtime import Runtime
from tests.support.waiting import eventually

HERE = Path(__file__).parent
SCENARIOS = re.findall(
    r'^  async "(.+)"\(', (HERE / "scenarios.mjs").read_text(encoding="utf-8"), re.MULTILINE
)

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm to bring the client with")


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


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What went wrong in each scenario; an empty text for one that went well."""
    runtime = Runtime(workspace=tmp_path_factory.mktemp("workspace"))
    try:
        command = ["node", str(HERE / "run.mjs"), runtime.url, str(modules()), str(runtime.workspace)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        assert lines, ran.stderr
        yield {line["name"]: line.get("error", "") for line in lines}
        assert runtime.failures() == []
        assert runtime.stop() == 0
        eventually(lambda: runtime.descendants() == {}, timeout=10, every=0.05)
    finally:
        runtime.dispose()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_published_client_works(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes.get(scenario, "it was not reached") == ""
