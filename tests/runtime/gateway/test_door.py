"""Who gets in by the aggregated API's door, and what they are told."""

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, proxy_path


async def test_a_command_travels_to_the_sandboxs_pod_and_its_answer_back(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))

    answer = await gateway.request("POST", proxy_path("hello", "/api/execute?x=1"), data=b'{"command":"id"}')

    assert (answer.status, answer.body) == (200, b"ok")
    assert runtime.head()[0] == b"POST /api/execute?x=1 HTTP/1.1"
    assert bytes(runtime.received).endswith(b'{"command":"id"}')
