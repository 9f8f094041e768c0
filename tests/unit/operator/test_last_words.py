"""What a runtime leaves when it ends may have been written by whoever worked in the sandbox: nothing of it
raises, and nothing of it makes a status that the API server refuses.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_operator.decide import decide
from sandpod_operator.last_words import MOST_SESSIONS, QUIET, read_last_words
from sandpod_operator.status import status_patch

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    ended,
    pod,
    running,
    sandbox,
    situation,
)

VOLUME = {"workspace": {"size": "1Gi"}}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
MOMENTS = st.sampled_from(
    [
        "2026-11-18T11:50:00Z",
        "2026-11-18T11:50:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-11-18T11:50:00.123456+00:00:30",
        "20261118T115000Z",
        "2026-W47-3",
        "1e9",
        "",
    ]
)
# Lone halves of pairs too: JSON can write them.
NAMES = st.text(max_size=300) | st.text(alphabet=["a", "\0", "\ud800", "\udfff"], max_size=300)
SESSIONS = st.lists(
    st.fixed_dictionaries({}, optional={"id": NAMES | SCALARS, "cwd": NAMES | SCALARS, "x": ANYTHING})
    | ANYTHING,
    max_size=6,
)
WORDS = st.fixed_dictionaries(
    {"reason": st.sampled_from(["idle", "requested", "terminated"]) | ANYTHING},
    optional={
        "detail": NAMES | ANYTHING,
        "saved": st.booleans() | ANYTHING,
        "lastActiveAt": MOMENTS | ANYTHING,
        "endedAt": MOMENTS | ANYTHING,
        "sessions": SESSIONS | ANYTHING,
    },
)


@given(st.text(max_size=200) | ANYTHING.map(json.dumps))
def test_no_message_raises(message: str) -> None:
    read_last_words(message)


@settings(deadline=None)
@given(WORDS.map(json.dumps))
def test_no_words_make_a_status_that_is_refused(message: str) -> None:
    gone = pod(VOLUME, ended(0, reason="Completed", message=message))
    plan = decide(situation(sandbox(VOLUME, running()), gone), now=NOW, installation=INSTALLATION)

    assert plan.status is not None
    patch = status_patch(plan.status)
    # A lone half of a surrogate pair cannot be sent.
    json.dumps(patch, ensure_ascii=False, allow_nan=False).encode()
    check_sessions(patch["sessions"] or [])
    if patch["lastActiveAt"] is not None:
        moment = datetime.fromisoformat(patch["lastActiveAt"])
        assert moment.tzinfo == UTC
        assert moment <= NOW
    for notice in plan.notices:
        notice.message.encode()


def check_sessions(sessions: list[Any]) -> None:
    names = [session["id"] for session in sessions]
    assert len(names) == len(set(names)) <= MOST_SESSIONS
    for session in sessions:
        assert 0 < len(session["id"]) <= 256
        assert "\0" not in session["id"] + session.get("cwd", "")
        assert set(session) <= {"id", "cwd"}


@pytest.mark.parametrize(
    "message",
    ["", "[]", "{}", "null", '"idle"', "{" * 5000, "[" * 100_000, '{"reason": "over"}', "1" * 5000],
    ids=lambda message: message[:12],
)
def test_what_is_no_runtime_s_message_says_nothing(message: str) -> None:
    assert read_last_words(message) is None


def test_more_sessions_than_a_status_holds_are_left_out() -> None:
    sessions = [{"id": f"s{number}"} for number in range(MOST_SESSIONS + 10)]
    words = read_last_words(json.dumps({"reason": "idle", "sessions": sessions}))
    assert words is not None
    assert len(words.sessions) == MOST_SESSIONS


@pytest.mark.parametrize(("seconds", "quiet"), [(59, False), (60, True), (-3600, False)])
def test_it_was_quiet_when_nobody_had_worked_for_a_minute_by_its_own_clock(seconds: int, quiet: bool) -> None:
    assert QUIET.total_seconds() == 60
    ends = datetime(2020, 1, 1, 0, 2, tzinfo=UTC)
    active = ends.timestamp() - seconds
    words = read_last_words(
        json.dumps(
            {
                "reason": "terminated",
                "lastActiveAt": datetime.fromtimestamp(active, UTC).isoformat(),
                "endedAt": ends.isoformat(),
            }
        )
    )
    assert words is not None
    assert words.quiet is quiet
    assert not words.slept
