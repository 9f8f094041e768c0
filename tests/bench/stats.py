"""Percentiles and the table that docs/benchmarks.md shows."""

import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# As in a pod. Tests let the runtime log every request.
QUIETLY = ("--log-level", "info")
MARKS = ("<!-- {}: begin -->", "<!-- {}: end -->")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: what was measured, what it came to, the goal it has, and how it was measured."""

    what: str
    figure: str
    goal: str = ""
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """The rows of one suite, measured in one run."""

    title: str
    rows: Sequence[Row]


def p50(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def p90(values: Sequence[float]) -> float:
    """The ninth decile, between the two nearest values."""
    return statistics.quantiles(values, n=10, method="inclusive")[8]


def p99(values: Sequence[float]) -> float:
    """The last percentile, between the two nearest values."""
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def ms(seconds: float) -> str:
    """Milliseconds, with a decimal below ten."""
    value = seconds * 1000
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def pair(values: Sequence[float]) -> str:
    """p50 and p90 as one figure."""
    return f"{ms(p50(values))} / {ms(p90(values))}"


def machine() -> str:
    """The machine in one line: a figure without it says nothing."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    total = int(Path("/proc/meminfo").read_text().split()[1]) // 2**20
    model = models[0] if models else platform.machine()
    return f"{len(models)} cores ({model}), {total} GiB, Linux {platform.release()}"


def table(sections: Sequence[Section]) -> str:
    """All sections as Markdown."""
    lines: list[str] = []
    for section in sections:
        lines += [f"### {section.title}", "", "| what | figure | goal | how |", "|---|---|---|---|"]
        lines += [f"| {r.what} | {r.figure} | {r.goal} | {r.how} |" for r in section.rows]
        lines.append("")
    return "\n".join(lines)


def publish(text: str, page: Path, *, place: str = "figures") -> None:
    """Replaces what is between the page's two marks of that name, and nothing else."""
    begin, end = (mark.format(place) for mark in MARKS)
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
