"""What a runtime is told to do."""

from dataclasses import replace
from typing import Any

import pytest
from sandpod_crds.keys import credential
from sandpod_operator.observations import Errand, Outcome
from sandpod_operator.plan import Ask

from tests.support.asked_runtime import ASK, SECRET, AskedRuntime, Asking, says
from tests.support.operator_objects import KEY, POD_UID

CREDENTIAL = credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID)
SLEEP = replace(ASK, errand=Errand.SLEEP, subject="paused")
STAY = replace(ASK, errand=Errand.STAY, subject="request 1")
ADJUST = replace(ASK, errand=Errand.ADJUST, subject="5m", sleep_after=300)


@pytest.mark.parametrize(
    ("ask", "path", "body"),
    [
        (SLEEP, "sleep", {"reason": "paused"}),
        (STAY, "lease", {"seconds": 10.0, "holder": "wake"}),
        (ADJUST, "", {"sleepAfterSeconds": 300, "keepAlive": False}),
        (replace(ADJUST, sleep_after=None), "", {"sleepAfterSeconds": None, "keepAlive": True}),
    ],
    ids=["sleep", "stay", "adjust", "keep alive"],
)
async def test_a_runtime_is_told_with_its_own_credential(
    bench: Asking, ask: Ask, path: str, body: dict[str, Any]
) -> None:
    bench.runtime.commands = [says(200, {})]
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    what, headers, told = bench.runtime.requests[0]
    assert (what, told) == (path, body)
    assert headers["X-Sandpod-Credential"] == CREDENTIAL
    assert "X-Sandpod-Bind-Token" not in headers
    assert (answer.errand, answer.outcome, answer.subject) == (ask.errand, Outcome.DONE, ask.subject)


@pytest.mark.parametrize("ask", [SLEEP, STAY, ADJUST], ids=lambda ask: ask.errand.value)
@pytest.mark.parametrize("status", [503, 404, 302])
async def test_a_runtime_that_does_not_do_as_told_has_refused(bench: Asking, ask: Ask, status: int) -> None:
    bench.runtime.commands = [says(status, {"code": "DRAINING", "message": "x" * 60_000})]
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    assert (answer.outcome, answer.message) == (Outcome.REFUSED, f"it answered {status}")
    assert len(bench.runtime.requests) == 1


@pytest.mark.parametrize("ask", [SLEEP, STAY, ADJUST], ids=lambda ask: ask.errand.value)
@pytest.mark.parametrize("status", [401, 500, 502])
async def test_a_runtime_in_trouble_for_a_moment_is_told_again(bench: Asking, ask: Ask, status: int) -> None:
    bench.runtime.commands = [says(status, {}), says(200, {})]
    bench.client.want(KEY, ask)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert len(bench.runtime.requests) == 2


async def test_a_runtime_that_ends_while_it_is_told_is_told_again(bench: Asking) -> None:
    port = bench.runtime.port
    await bench.runtime.stop()
    bench.client.want(KEY, SLEEP)
    await bench.attempts.get()
    await bench.attempts.get()
    late = AskedRuntime()
    late.commands = [says(202, {})]
    await late.start(port)

    assert (await bench.answer()).outcome is Outcome.DONE
    await late.stop()
