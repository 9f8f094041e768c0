"""The ids of a request: a caller's trace is continued when it is well-formed, and never otherwise."""

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime import log, trace

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def test_a_well_formed_trace_is_continued_with_a_span_of_its_own() -> None:
    found = trace.enter({"traceparent": f"00-{TRACE}-{PARENT}-01"})
    assert found.trace_id == TRACE
    assert found.span_id != PARENT
    assert trace.current() is found


@pytest.mark.parametrize(
    "header",
    [
        f"01-{TRACE}-{PARENT}-01-of-the-future",
        f"cc-{TRACE}-{PARENT}-00",
        f"cc-{TRACE}-{PARENT}-00-",
    ],
)
def test_a_later_version_may_say_more(header: str) -> None:
    assert trace.continued(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"ff-{TRACE}-{PARENT}-01",  # never a version
        f"00-{TRACE}-{PARENT}-01-more",  # version 0 has four fields
        f"cc-{TRACE}-{PARENT}-01.more",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f" 00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
        f"00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01",
        f"00_{TRACE}_{PARENT}_01",
        "00-" + "a" * 10_000,
        f"cc-{TRACE}-{PARENT}-01-" + "x" * 10_000,
        f"00-{TRACE[:-1]}٣-{PARENT}-01",  # a digit, and not one of ours
    ],
)
def test_anything_else_is_as_if_it_were_not_there(header: str) -> None:
    assert trace.continued(header) is None
    found = trace.enter({"traceparent": header})
    assert re.fullmatch("[0-9a-f]{32}", found.trace_id)
    assert found.trace_id != TRACE


def sized(count: int) -> st.SearchStrategy[str]:
    return st.text("0123456789abcdef", min_size=count, max_size=count)


@given(version=sized(2), trace_id=sized(32), parent=sized(16), flags=sized(2))
def test_all_that_the_standard_allows_is_continued(
    version: str, trace_id: str, parent: str, flags: str
) -> None:
    allowed = version != "ff" and bool(trace_id.strip("0")) and bool(parent.strip("0"))
    found = trace.continued(f"{version}-{trace_id}-{parent}-{flags}")
    assert found == (trace_id if allowed else None)


@given(header=st.text(max_size=80) | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{30,34}-[0-9a-f]{14,18}-.*"))
def test_no_header_becomes_anything_but_a_trace_id(header: str) -> None:
    found = trace.continued(header)
    assert found is None or re.fullmatch("[0-9a-f]{32}", found)


def test_requests_have_different_ids() -> None:
    found = [trace.enter({}) for _ in range(100)]
    for field in ("trace_id", "span_id", "request_id"):
        assert len({getattr(each, field) for each in found}) == 100


@pytest.mark.parametrize(
    ("given_", "kept"), [("tr_0123456789abcdef", True), ("x" * 129, False), ("a\nb", False), ("ä", False)]
)
def test_the_clients_own_id_is_logged_when_it_is_harmless(given_: str, kept: bool) -> None:
    fields = trace.enter({"X-Trace-Id": given_}).fields()
    assert fields.get("client_trace_id") == (given_ if kept else None)


def test_a_line_of_the_log_bears_the_ids_of_its_request() -> None:
    found = trace.enter({})
    record = logging.makeLogRecord({"msg": "something", "levelname": "INFO", "extra": 1})
    line = log.JsonFormatter().format(record)
    assert f'"request_id":"{found.request_id}"' in line
    assert f'"trace_id":"{found.trace_id}"' in line
