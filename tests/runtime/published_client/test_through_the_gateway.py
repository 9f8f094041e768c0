"""The same client, pointed at `/v1/namespaces/{ns}/sandboxes/{name}/proxy` of a real gateway: nothing but its
base address and its bearer token tells it that there is one.
"""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sandpod_crds import keys

from tests.support import published_client
from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import KEY, harness
from tests.support.gateway_visitors import JANES
from tests.support.runtime import BIND, TERMINATED, TOKEN, Runtime
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm to bring the client with")


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A runtime as it is in a pod: it answers nobody but the gateway."""
    runtime = Runtime(insecure=False, workspace=tmp_path_factory.mktemp("workspace"))
    try:
        credential = keys.credential(key=KEY, namespace="default", pod_uid="pod-uid-1")
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        url = f"{runtime.url}/api/bind"
        answer = httpx.post(url, json=BIND | {"credential": credential}, headers=headers, trust_env=False)
        assert answer.status_code == 200
        yield runtime
        assert runtime.failures() == []
        assert runtime.stop() == TERMINATED
        eventually(lambda: runtime.descendants() == {}, timeout=10, every=0.05)
    finally:
        runtime.dispose()


@pytest.fixture(scope="module")
def outcomes(bound: Runtime) -> dict[str, str]:
    return asyncio.run(_run(bound.port, bound.workspace))


async def _run(port: int, workspace: Path) -> dict[str, str]:
    async with harness() as built:
        await built.start()
        built.targets["10.0.0.1"] = port
        await built.api.put(sandbox("hello"))
        url = f"{built.v1_url}/v1/namespaces/default/sandboxes/hello/proxy"
        return await published_client.outcomes(url, workspace=str(workspace), token=JANES)


@pytest.mark.parametrize("scenario", published_client.SCENARIOS)
def test_the_published_client_works_through_the_gateway(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes.get(scenario, "it was not reached") == ""
