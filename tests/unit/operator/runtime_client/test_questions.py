"""What a runtime is asked about: its setup, its disk."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from sandpod_operator.observations import Errand, Outcome, SetupResult
from sandpod_operator.plan import Ask

from tests.support.asked_runtime import ASK, Asking, says
from tests.support.operator_objects import KEY

CHECK = replace(ASK, errand=Errand.CHECK, subject="2026-11-18T12:00:00Z")
SETUP = replace(ASK, errand=Errand.SETUP, subject="")


async def test_the_setup_is_asked_about_until_it_has_ended(bench: Asking) -> None:
    answers = iter([{"setup": {"state": "running"}}, {"setup": {"state": "succeeded"}}])
    bench.runtime.lifecycle = lambda: web.json_response(next(answers))
    bench.client.want(KEY, SETUP)
    answer = await bench.answer()

    assert answer.setup == SetupResult(state="Succeeded")
    assert [what for what, _, _ in bench.runtime.requests] == ["lifecycle", "lifecycle"]


async def test_a_setup_that_failed_says_where_and_how(bench: Asking) -> None:
    failed = {"state": "failed", "step": 2, "command": "make", "exitCode": 2, "output": "no rule\n"}
    bench.runtime.lifecycle = says(200, {"setup": failed})
    bench.client.want(KEY, SETUP)
    answer = await bench.answer()

    said = "step 2 (make) ended with code 2: no rule"
    assert answer.setup == SetupResult(state="Failed", message=said)


async def test_a_runtime_that_is_not_ours_any_more_does_not_end_the_question_after_its_setup(
    bench: Asking,
) -> None:
    answers = iter([says(401, {}), says(500, {}), says(200, {"setup": None})])
    bench.runtime.lifecycle = lambda: next(answers)()
    bench.client.want(KEY, SETUP)

    assert (await bench.answer()).setup == SetupResult(state="Succeeded")


@pytest.mark.parametrize(
    ("disk", "message"),
    [
        ({"full": True, "free": 10, "total": 100}, "10 of 100 bytes are free."),
        ({"full": False, "free": 90, "total": 100}, ""),
        ({"full": "true"}, ""),
        (None, ""),
        ([], ""),
    ],
    ids=["full", "room", "no boolean", "none", "no record"],
)
async def test_a_runtime_says_whether_its_disk_is_full(bench: Asking, disk: Any, message: str) -> None:
    bench.runtime.lifecycle = says(200, {"disk": disk})
    bench.client.want(KEY, CHECK)
    answer = await bench.answer()

    assert (answer.outcome, answer.message, answer.subject) == (Outcome.DONE, message, CHECK.subject)


@pytest.mark.parametrize(
    ("disk", "unwritable"),
    [({"writable": False}, True), ({"writable": True}, False), ({}, False), (7, False)],
)
@pytest.mark.parametrize("again", [False, True], ids=["at the bind", "of one that was bound before"])
async def test_a_workspace_that_nobody_can_write_to_is_told(
    bench: Asking, disk: Any, unwritable: bool, again: bool
) -> None:
    body = {"runtimeVersion": "1", "disk": disk, "sandbox": {"uid": ASK.sandbox_uid}}
    bench.runtime.binds = [says(409, {}) if again else says(200, body)]
    bench.runtime.lifecycle = says(200, body)
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).unwritable is unwritable


HOSTILE: list[Any] = [
    [],
    {"setup": 7, "disk": "full"},
    {"setup": {"state": "failed", "step": {}, "command": ["x"], "exitCode": None, "output": {}}},
    {"setup": {"state": "failed", "output": "\ud800\0" * 20_000, "command": "x" * 50_000}},
    {"setup": {"state": "failed", "step": 1e308, "exitCode": float("inf")}},
    {"disk": {"full": True, "free": "\ud800\0" * 1000, "total": []}},
    {"runtimeVersion": ["1"], "isolation": {"mode": 7, "complete": "yes", "reason": "\0" * 9000}},
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("ask", [SETUP, CHECK, ASK], ids=lambda ask: ask.errand.value)
async def test_what_a_hostile_runtime_says_fits_into_a_status(bench: Asking, ask: Ask, body: Any) -> None:
    bench.runtime.binds = [says(409, {})]
    bench.runtime.lifecycle = lambda: web.Response(body=json.dumps(body).encode(), status=200)
    bench.client.want(KEY, ask)
    answer = await bench.answer()

    texts = [answer.message, answer.version, answer.setup.message if answer.setup else ""]
    texts += [answer.walls.reason] if answer.walls else []
    for text in texts:
        text.encode()
        assert "\0" not in text
        assert len(text) <= 4096
