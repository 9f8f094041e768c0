"""The text that Prometheus reads, and that nobody can make it grow."""

import re

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.metrics import BOUNDS, Family, Requests, gauge, written

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = r'\{([a-z_]+="(\\["\\n]|[^"\\\n])*",?)*\}'
LINE = re.compile(
    rf"# HELP {NAME} [^\n]+|# TYPE {NAME} (gauge|counter|histogram)|{NAME}({LABELS})? -?[0-9.e+-]+"
)


def text_of(requests: Requests) -> str:
    return written(requests.families())


def test_answers_are_counted_by_route_and_status() -> None:
    requests = Requests()
    for status in (200, 200, 409):
        requests.answered(method="POST", route="/api/execute", status=status, seconds=0.1)
    lines = text_of(requests).splitlines()
    labels = 'method="POST",route="/api/execute"'
    assert f'sandpod_runtime_requests_total{{{labels},status="200"}} 2' in lines
    assert f'sandpod_runtime_requests_total{{{labels},status="409"}} 1' in lines


def test_a_histogram_accumulates_and_its_bounds_belong_to_the_lower_bucket() -> None:
    requests = Requests()
    for seconds in (0.0, BOUNDS[0], BOUNDS[1], 1e6):
        requests.answered(method="GET", route="/api/ping", status=200, seconds=seconds)
    buckets = re.findall(r'_bucket\{route="/api/ping",le="([^"]+)"\} (\d+)', text_of(requests))
    assert [int(count) for _, count in buckets] == [2, 3, 3, 3, 3, 3, 3, 4]
    assert [bound for bound, _ in buckets] == [*map(str, BOUNDS), "+Inf"]
    assert 'sandpod_runtime_request_seconds_count{route="/api/ping"} 4' in text_of(requests)


def test_what_strangers_send_makes_no_new_series() -> None:
    requests = Requests()
    for number in range(1000):
        requests.answered(method=f"METHOD{number}", route="", status=404, seconds=0.1)
    assert 'requests_total{method="other",route="none",status="404"} 1000' in text_of(requests)
    assert len(text_of(requests).splitlines()) < 25


@given(value=st.floats(allow_nan=False, allow_infinity=False), label=st.text())
def test_every_line_is_one_that_prometheus_can_read(value: float, label: str) -> None:
    text = written([gauge("some_figure", "Some figure.", value, kind=label.replace("\r", ""))])
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        assert LINE.fullmatch(line), line


def test_what_is_open_is_counted_by_its_route_until_it_ends() -> None:
    requests = Requests()
    with requests.in_flight("/api/watch"), requests.in_flight("/api/watch"):
        assert 'sandpod_runtime_requests_in_flight{route="/api/watch"} 2' in text_of(requests)
    assert 'sandpod_runtime_requests_in_flight{route="/api/watch"} 0' in text_of(requests)


def test_a_family_is_described_once_and_has_all_of_its_samples() -> None:
    family = Family(
        name="sandpod_runtime_things",
        help="Things.",
        kind="gauge",
        samples=[("", {"kind": "a"}, 1), ("", {"kind": "b"}, 2)],
    )
    assert written([family]).splitlines() == [
        "# HELP sandpod_runtime_things Things.",
        "# TYPE sandpod_runtime_things gauge",
        'sandpod_runtime_things{kind="a"} 1',
        'sandpod_runtime_things{kind="b"} 2',
    ]
