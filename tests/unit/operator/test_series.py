"""What Prometheus reads."""

from sandpod_operator.metrics import Metrics
from sandpod_operator.series import Counter, Gauge, Histogram


def test_a_histogram_counts_each_bucket_with_all_below_it() -> None:
    histogram = Histogram("took_seconds", "How long.", buckets=(0.1, 1, 2.5))
    for seconds in (0.05, 0.1, 0.5, 7):
        histogram.observe(seconds, kind="cold")

    assert list(histogram.lines()) == [
        "# HELP took_seconds How long.",
        "# TYPE took_seconds histogram",
        'took_seconds_bucket{kind="cold",le="0.1"} 2',
        'took_seconds_bucket{kind="cold",le="1"} 3',
        'took_seconds_bucket{kind="cold",le="2.5"} 3',
        'took_seconds_bucket{kind="cold",le="+Inf"} 4',
        'took_seconds_sum{kind="cold"} 7.65',
        'took_seconds_count{kind="cold"} 4',
    ]
    assert histogram.count(kind="cold") == 4
    assert histogram.count(kind="warm") == 0


def test_a_large_counter_still_counts_by_one() -> None:
    counter = Counter("seen", "Seen.")
    counter.add(123_456_789)
    counter.add()

    assert list(counter.lines())[-1] == "seen_total 123456790"


def test_a_gauge_may_have_several_labels() -> None:
    gauge = Gauge("pods", "Pods.", lambda: {("a", "x"): 2, ("a", "y"): 0.5}, label=("namespace", "pool"))

    assert list(gauge.lines())[2:] == [
        'pods{namespace="a",pool="x"} 2',
        'pods{namespace="a",pool="y"} 0.5',
    ]


def test_every_series_has_a_name_of_its_own() -> None:
    names = [line.split()[2] for line in Metrics().text().splitlines() if line.startswith("# TYPE")]

    assert len(names) == len(set(names)) > 10
