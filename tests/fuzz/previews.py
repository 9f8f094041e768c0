"""A run of malformed requests against the previews' port of a gateway of its own: what it answers, what
reaches the program behind it, and what is left afterwards. `python -m tests.fuzz.previews` is one.
"""

import argparse
import asyncio
import contextlib
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import uvloop

from tests.fuzz.malformed import request
from tests.support.gateway_harness import Harness, harness, until
from tests.support.recorder import Recorder

AT_ONCE = 64
# For an answer to something that may rightly have none, because it is not whole
QUIET_SECONDS = 0.5
SHOWN = 20
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /[!-~]*")


@dataclass
class Report:
    requests: int = 0
    # By the status of the first answer; 0 is none at all
    answers: Counter[int] = field(default_factory=Counter[int])
    passed_on: int = 0
    failures: list[str] = field(default_factory=list[str])


async def run(built: Harness, *, count: int, seed: int) -> Report:
    """`built` is not started yet. Raises when the gateway does not serve or let go afterwards."""
    program = Recorder()
    async with await program.listen():
        # Nothing is to be refused for coming too fast.
        await built.start(source_requests_per_second=1e6, source_burst=10**6)
        built.programs["10.0.0.1", 8080] = program.port
        runtime = await built.raw_runtime()
        await built.expose("hello", {"port": 8080})
        host = built.preview_host("hello").encode()
        hosts = [host, host, host, b"8080-hello-" + b"a" * 20 + b".sandpod.localhost", b"sandpod.example"]
        before = len(asyncio.all_tasks())
        report = Report()
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                data = request(random.Random(f"{seed}/{number}"), hosts=hosts)
                answer = await _sent(data, port=built.gateway.http_port or 0)
                _judge(report, f"request {number} of seed {seed}", data, answer)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        report.passed_on = len(program.requests)
        # Those that were sent on have a method and a path; what else there is was never meant.
        odd = [line for line, _ in program.take() if not _LINE.fullmatch(line)]
        report.failures += [f"the program got {line[:100]!r}" for line in odd[:SHOWN]]
        if (await built.preview("GET", host=host.decode())).status != 200:
            report.failures.append("the gateway does not serve any more")
        await until(_nothing_left(before, program, runtime.serving), seconds=20)
        await program.close()
        return report


async def _sent(data: bytes, *, port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        writer.write(data)
        async with asyncio.timeout(QUIET_SECONDS):
            answer = await reader.read(65_536)
    writer.close()
    return answer


def _judge(report: Report, name: str, data: bytes, answer: bytes) -> None:
    report.requests += 1
    statuses = [int(status) for status in _STATUS.findall(answer)]
    report.answers[statuses[0] if statuses else 0] += 1
    wrong = (answer and not answer.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))) or any(
        status >= 500 for status in statuses
    )
    if wrong and len(report.failures) < SHOWN:
        report.failures.append(f"{name}: {answer[:200]!r} to {data[:300]!r}")


def _nothing_left(before: int, program: Recorder, runtime: set[asyncio.Task[None]]) -> Callable[[], bool]:
    def check() -> bool:
        # Connections that are kept to runtime and program have a task each there, but none in the gateway.
        return len(asyncio.all_tasks() - program.serving - runtime) <= before

    return check


async def _main(count: int, seed: int) -> Report:
    async with harness() as built:
        return await run(built, count=count, seed=seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.previews")
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    report = uvloop.run(_main(chosen.count, chosen.seed))
    print(
        f"{report.requests} requests, {report.passed_on} of them passed on; answers: {dict(report.answers)}"
    )
    for failure in report.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print("nothing failed" if not report.failures else f"{len(report.failures)} failed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
