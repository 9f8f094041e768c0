"""`make fuzz`: N requests to a runtime of its own (20,000), and what came of them. `--seed` repeats a run."""

import argparse
import random
import signal
import sys
import time

from tests.fuzz.campaign import Campaign, Report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="a part of 'METHOD /path': only these endpoints")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    # So that the runtime and its workspace do not outlive a run that is stopped.
    signal.signal(signal.SIGTERM, _stop)
    begun = time.monotonic()
    campaign = Campaign(seed=chosen.seed, only=chosen.only)
    try:
        report = campaign.run(chosen.count)
    finally:
        campaign.dispose()
    _print(report, seconds=time.monotonic() - begun)
    return 1 if report.failures else 0


def _stop(number: int, _: object) -> None:
    sys.exit(128 + number)


def _print(report: Report, *, seconds: float) -> None:
    print(
        f"{report.requests} requests to {len(report.endpoints)} endpoints in {seconds:.0f} s, "
        f"seed {report.seed}"
    )
    for (endpoint, code), count in sorted(report.codes.items()):
        mark = "  (not in its description)" if (endpoint, code) in report.undeclared else ""
        print(f"  {count:6} {endpoint}: {code}{mark}")
    never = [name for name in report.endpoints if not report.codes[name, "ok"]]
    print(f"never with success: {', '.join(never)}")
    print(f"grown by {report.grown} MiB")
    print(f"slowest: {report.slowest[0]:.2f} s: {report.slowest[1][:300]}")
    for failure in report.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print("nothing failed" if not report.failures else f"{len(report.failures)} failed")


if __name__ == "__main__":
    raise SystemExit(main())
