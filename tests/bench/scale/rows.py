"""The table of a run."""

from collections import Counter

from tests.bench.scale.measure import Restart, Result, Storm
from tests.bench.stats import Row, Section, p50, p99


def section(result: Result) -> Section:
    """Everything that was measured, with its goal where there is one."""
    count = result.starts.count
    return Section(
        title=f"{count:,} sandboxes on simulated nodes",
        rows=[*_creates(result), *_writes(result), *_costs(result), *_sleeping(result)],
    )


def _creates(result: Result) -> list[Row]:
    raw, starts = result.raw, result.starts
    return [
        Row(
            what="raw pods, create → Running",
            figure=f"{raw.done_per_second:.0f} per second",
            how=f"{raw.count:,} of the same spec, from 8 connections: what API server and scheduler can do",
        ),
        _served("raw pods", raw),
        Row(
            what="sandboxes, create → Running",
            figure=f"{starts.done_per_second:.0f} per second",
            goal="≥ 50, or the API server's limit",
            how=f"{starts.count:,}, from 8 connections, which sent {starts.sent_per_second:.0f} per second",
        ),
        _served("sandboxes", starts, goal="what it does for raw pods"),
        Row(
            what="operator's CPU for each of them",
            figure=f"{starts.use.cpu_seconds / starts.count * 1000:.1f} ms",
            how=f"{starts.use.cores:.0%} of a core during the storm",
        ),
    ]


def _served(what: str, storm: Storm, *, goal: str = "") -> Row:
    """Its limit is not a number of objects, of which one takes more writes than another."""
    served, each = storm.served, storm.served.writes / storm.count
    return Row(
        what=f"API server, {what}: writes of all concerned",
        figure=f"{served.writes / storm.seconds:.0f} per second",
        goal=goal,
        how=f"{each:.1f} writes for each, and {served.cpu_seconds / storm.count * 1000:.0f} ms of the API "
        f"server's CPU; it used {served.cpu_seconds / storm.seconds:.0%} of a core",
    )


def _writes(result: Result) -> list[Row]:
    starts = result.starts
    return [
        Row(
            what="API writes for each start",
            figure=f"{_each(starts, starts.writes)}",
            goal="≤ 6",
            how=_listed(starts, starts.writes),
        ),
        Row(
            what="of them, as the API server counted",
            figure=f"{_each(starts, starts.counted)}",
            how=_listed(starts, starts.counted),
        ),
    ]


def _costs(result: Result) -> list[Row]:
    running = result.running
    return [
        Row(what="operator, RSS without sandboxes", figure=f"{result.empty_rss_mb:.0f} MB"),
        Row(
            what="operator, highest RSS in the storm", figure=f"{result.peak_rss_mb:.0f} MB", goal="≤ 200 MB"
        ),
        Row(what="operator, RSS with all Running", figure=f"{running.use.rss_mb:.0f} MB", goal="≤ 200 MB"),
        Row(
            what="operator, CPU with all Running and nothing to do",
            figure=f"{running.use.cores:.2%} of a core",
            goal="≤ 2 %",
            how=f"over {running.use.seconds:.0f} s; {running.writes:.0f} API writes",
        ),
        Row(
            what="operator's start → all looked at",
            figure=f"{result.restart.seconds:.1f} s",
            goal="≤ 10 s",
            how=_restart(result.restart),
        ),
    ]


def _sleeping(result: Result) -> list[Row]:
    sleeps, asleep = result.sleeps, result.asleep
    return [
        Row(
            what="falling asleep, end of the runtime → Asleep",
            figure=f"{sleeps.done_per_second:.0f} per second",
            how=f"p50 {p50(sleeps.latencies):.1f} s, p99 {p99(sleeps.latencies):.1f} s, all at once",
        ),
        Row(
            what="API writes for each",
            figure=_each(sleeps, sleeps.writes),
            how=_listed(sleeps, sleeps.writes),
        ),
        Row(what="operator, RSS with all Asleep", figure=f"{asleep.use.rss_mb:.0f} MB", goal="≤ 200 MB"),
        Row(
            what="operator, CPU with all Asleep",
            figure=f"{asleep.use.cores:.2%} of a core",
            goal="≤ 2 %",
            how=f"over {asleep.use.seconds:.0f} s; {asleep.writes:.0f} API writes",
        ),
        Row(
            what="operator's start → all looked at, all Asleep",
            figure=f"{result.restart_asleep.seconds:.1f} s",
            goal="≤ 10 s",
            how=_restart(result.restart_asleep),
        ),
    ]


def _restart(restart: Restart) -> str:
    used = f"{restart.cpu_seconds:.1f} s of CPU, {restart.rss_mb:.0f} MB"
    return f"{used}; {restart.writes:.0f} API writes (goal 0)"


def _each(storm: Storm, writes: Counter[str]) -> str:
    return f"{writes.total() / storm.count:.2f}"


def _listed(storm: Storm, writes: Counter[str]) -> str:
    each = {what: number / storm.count for what, number in sorted(writes.items())}
    return ", ".join(f"{what} {number:.2f}" for what, number in each.items() if number >= 0.005)
