"""A run of malformed requests against the previews' port of a gateway of its own, by its Python process or by
HAProxy: what it answers, what reaches the program behind it, and what is left afterwards.
`python -m tests.fuzz.previews` is one of each.
"""

import argparse
import asyncio
import contextlib
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from tests.fuzz.malformed import request
from tests.support.gateway_harness import Harness, harness, until
from tests.support.haproxy import FOLDER, HAProxy
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
    # By HAProxy alone
    carried: int = 0
    failures: list[str] = field(default_factory=list[str])


async def run(built: Harness, *, count: int, seed: int, haproxy: HAProxy | None = None) -> Report:
    """`built` is not started yet. Raises when the gateway does not serve or let go afterwards."""
    shared: dict[str, str] = {}
    if haproxy is not None:
        await haproxy.listening()
        shared = {"sockets": str(haproxy.folder), "haproxy_map": str(FOLDER / "hosts.map")}
    program = Recorder()
    async with await program.listen():
        # Nothing is to be refused for coming too fast.
        await built.start(source_requests_per_second=1e6, source_burst=10**6, **shared)
        built.programs["10.0.0.1", 8080] = program.port
        runtime = await built.raw_runtime()
        await built.expose("hello", {"port": 8080})
        host = built.preview_host("hello").encode()
        hosts = [host, host, host, b"8080-hello-" + b"a" * 20 + b".sandpod.localhost", b"sandpod.example"]
        port = haproxy.port if haproxy is not None else built.gateway.http_port or 0
        before = len(asyncio.all_tasks())
        report = Report()
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                data = request(random.Random(f"{seed}/{number}"), hosts=hosts)
                answer = await _sent(data, port=port)
                _judge(report, f"request {number} of seed {seed}", data, answer)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        report.passed_on = len(program.requests)
        # Those that were sent on have a method and a path; what else there is was never meant.
        odd = [line for line, _ in program.take() if not _LINE.fullmatch(line)]
        report.failures += [f"the program got {line[:100]!r}" for line in odd[:SHOWN]]
        if haproxy is not None:
            report.carried = sum((await haproxy.admin.answered()).values())
            # Raises when a line is none: somebody has written into it.
            assert all(line["audit"] == "fast" for line in haproxy.audit_lines())
        good = b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
        if not (await _sent(good, port=port)).startswith(b"HTTP/1.1 200 "):
            report.failures.append("the gateway does not serve any more")
        if haproxy is None:  # which keeps connections to the gateway
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


async def _main(count: int, seed: int, *, by_haproxy: bool) -> Report:
    async with harness() as built:
        if not by_haproxy:
            return await run(built, count=count, seed=seed)
        with tempfile.TemporaryDirectory(prefix="sandpod-") as folder:
            # All of it comes from one address, and most of it is in vain.
            haproxy = HAProxy(Path(folder), SANDPOD_ERRORS_PER_SOURCE="1000000000")
            try:
                return await run(built, count=count, seed=seed, haproxy=haproxy)
            finally:
                haproxy.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.previews")
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args()
    failed = 0
    for by_haproxy in (False, True):
        print(f"seed {chosen.seed}, by {'HAProxy' if by_haproxy else 'the Python process'}", flush=True)
        report = uvloop.run(_main(chosen.count, chosen.seed, by_haproxy=by_haproxy))
        carried = f", {report.carried} of these by HAProxy alone" if by_haproxy else ""
        print(f"{report.requests} requests, {report.passed_on} of them passed on{carried}")
        print(f"answers: {dict(sorted(report.answers.items()))}")
        for failure in report.failures:
            print(f"FAILED {failure}", file=sys.stderr)
        failed += len(report.failures)
    print("nothing failed" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
