"""The npm client that others publish for this protocol, unchanged, against a real runtime.

Only its platform is ours (platform.mjs): a place to keep settings, and one container, which is the runtime.
"""

import asyncio
import shutil
from collections.abc import Iterator

import pytest

from tests.support import published_client
from tests.support.runtime import TERMINATED, Runtime
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm to bring the client with")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    runtime = Runtime(workspace=tmp_path_factory.mktemp("workspace"))
    try:
        yield asyncio.run(published_client.outcomes(runtime.url, workspace=str(runtime.workspace)))
        assert runtime.failures() == []
        assert runtime.stop() == TERMINATED
        eventually(lambda: runtime.descendants() == {}, timeout=10, every=0.05)
    finally:
        runtime.dispose()


@pytest.mark.parametrize("scenario", published_client.SCENARIOS)
def test_the_published_client_works(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes.get(scenario, "it was not reached") == ""
