"""What the operator finds or makes before the first sandbox."""

import base64
from datetime import UTC, datetime

import pytest
from sandpod_operator.bootstrap import find_runtime_mount, installation_key, wait_until_installed
from sandpod_operator.errors import BadSecret, NotInstalled
from sandpod_operator.objects import Json
from sandpod_operator.settings import RuntimeMount

from tests.support.operator_api import Api
from tests.support.operator_objects import INSTALLATION, installation

TODAY = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
KEY = "/api/v1/namespaces/sandpod-system/secrets/sandpod-key"


async def test_the_key_is_made_once() -> None:
    api = Api(now=lambda: TODAY)
    first = await installation_key(api, INSTALLATION.settings)
    again = await installation_key(api, INSTALLATION.settings)

    assert len(first) == 32
    assert first == again


async def test_of_two_that_make_the_key_at_once_one_wins() -> None:
    api = Api(now=lambda: TODAY)

    def race(number: int, call: str) -> None:
        if call.startswith("POST"):
            data = {"key": base64.b64encode(b"x" * 32).decode()}
            api.put(KEY, {"metadata": {"name": "sandpod-key", "namespace": "sandpod-system"}, "data": data})

    api.before = race

    assert await installation_key(api, INSTALLATION.settings) == b"x" * 32


@pytest.mark.parametrize("data", [{}, {"key": "not base64!"}, {"key": base64.b64encode(b"short").decode()}])
async def test_a_key_that_is_no_key_is_not_replaced(data: Json) -> None:
    api = Api(now=lambda: TODAY)
    api.put(KEY, {"metadata": {"name": "sandpod-key", "namespace": "sandpod-system"}, "data": data})

    with pytest.raises(BadSecret, match="sandpod-system/sandpod-key has no entry 'key' of 32 bytes"):
        await installation_key(api, INSTALLATION.settings)


async def test_a_cluster_that_cannot_be_asked_gets_init_containers() -> None:
    api = Api(now=lambda: TODAY)

    assert await find_runtime_mount(api, INSTALLATION.settings) is RuntimeMount.INIT_CONTAINER
    told = installation(runtimeMount="ImageVolume").settings
    assert await find_runtime_mount(api, told) is RuntimeMount.IMAGE_VOLUME


async def test_the_operator_waits_for_the_crds_and_says_when_there_are_none() -> None:
    api = Api(now=lambda: TODAY)
    with pytest.raises(NotInstalled, match=r"does not know all of sandpod.dev: install the chart's CRDs"):
        await wait_until_installed(api, patience=0)
    discovery = "/apis/sandpod.dev/v1alpha1"
    names = ["sandboxes", "sandboxes/status", "sandboxtemplates", "sandboxpools"]
    api.put(discovery, {"metadata": {}, "resources": [{"name": name} for name in names]})
    # An upgrade that brings a new kind: kopf would never watch it.
    with pytest.raises(NotInstalled):
        await wait_until_installed(api, patience=0)
    names.append("sandboxpolicies")
    api.change(discovery, {"resources": [{"name": name} for name in names]})

    await wait_until_installed(api, patience=0)
