"""A whole run: every endpoint gets its share of requests; afterwards nothing of them may be left."""

import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from sandpod_runtime.openapi.generate import routes_of_a_runtime
from sandpod_runtime.routing import Endpoint

from tests.fuzz import scratch
from tests.fuzz.attempts import Attempt, Attempts, kind_of
from tests.fuzz.judging import Wrong, judge
from tests.fuzz.sending import Answer, send
from tests.fuzz.values import FILES, Values
from tests.support.runtime import TERMINATED, Runtime
from tests.support.waiting import eventually

Json = dict[str, Any]
_MOST_FAILURES = 60
# So many failures that begin with the same words are shown.
_ALIKE = 3
# So many equal requests at once, every so often.
_BURST, _BURST_EVERY = 6, 40
# What ends all that the others work with.
_SWEEPING = ("/api/process/kill-all",)
_UNHEALTHY = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
# What interpreters, caches and pools keep; a leak of 5 KiB for each of 20,000 requests would be more.
_GROWTH_MIB = 96
# Descriptors of a few connections that are just being closed.
_SPARE_DESCRIPTORS = 4


@dataclass
class Report:
    seed: int
    requests: int = 0
    endpoints: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    undeclared: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    slowest: tuple[float, str] = (0.0, "")
    grown: int = 0
    failures: list[str] = field(default_factory=list[str])
    kinds: Counter[str] = field(default_factory=Counter[str])


class Campaign:
    def __init__(self, *, seed: int, only: str = "") -> None:
        self._only = only
        self._home = Path(tempfile.mkdtemp(prefix="fuzz-home-"))
        self._home.chmod(0o777)
        (self._home / "tmp").mkdir()
        (self._home / "tmp").chmod(0o777)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "TMPDIR": str(self._home / "tmp"),
            "GIT_TERMINAL_PROMPT": "0",
        }
        self._elsewhere = scratch.elsewhere()
        self._state = self._home / "state"
        self.runtime = Runtime(
            prefix=scratch.somebody(),
            environ=environ,
            arguments=["--log-level", "info", "--state", str(self._state)],
        )
        scratch.furnish(self.runtime.workspace)
        self.report = Report(seed=seed)
        self._threads = ThreadPoolExecutor(_BURST)
        self._learned: defaultdict[str, list[str]] = defaultdict(list)
        self._seen_failures = 0
        self._started = time.time()

    def dispose(self) -> None:
        self._threads.shutdown()
        self.runtime.dispose()
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, count: int) -> Report:
        description = self._get("/openapi.json")
        endpoints = asyncio.run(routes_of_a_runtime())
        values = Values(
            description["components"]["schemas"],
            learned=self._learned,
            workspace=str(self.runtime.workspace),
        )
        plans = [
            Attempts(method=method.upper(), path=path, operation=operation, values=values)
            for path, methods in description["paths"].items()
            for method, operation in methods.items()
            if self._only in f"{method.upper()} {path}"
        ]
        # Whatever is imported late, is by now.
        self._round(plans, endpoints, each=3, seed_base=self.report.seed)
        before = self._footprint()
        while self.report.requests < count and len(self.report.failures) < _MOST_FAILURES:
            left = count - self.report.requests
            each = max(1, min(25, -(-left // len(plans))))
            self._round(plans, endpoints, each=each, seed_base=self.report.seed + self.report.requests + 1)
        self._check_end(before)
        return self.report

    def _round(self, plans: list[Attempts], endpoints: Any, *, each: int, seed_base: int) -> None:
        """Few requests to each in turn, so that they meet what the others have made."""
        for name in FILES[:6]:
            # An earlier round may have removed it.
            self._call("POST", "/api/write", {"path": name, "content": "first\n" + "one line\n" * 100})
        # Shuffled, for otherwise what one deletes would never be there for the next.
        for number, plan in enumerate(random.Random(seed_base).sample(plans, len(plans))):
            count = 1 if plan.route[1] in _SWEEPING else each
            self._share(plan, endpoints[plan.route], count=count, random_seed=seed_base * 1000 + number)

    def _share(self, plan: Attempts, endpoint: Endpoint, *, count: int, random_seed: int) -> None:
        @seed(random_seed)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=_UNHEALTHY,
        )
        @given(plan.strategy())
        def one(attempt: Attempt) -> None:
            self._one(attempt, endpoint)

        one()

    def _one(self, attempt: Attempt, endpoint: Endpoint) -> None:
        if len(self.report.failures) >= _MOST_FAILURES:
            return
        self.report.requests += 1
        name = " ".join(attempt.route)
        self.report.endpoints[name] += 1
        begun = time.monotonic()
        if self.report.requests % _BURST_EVERY:
            answers = [self._send(attempt, self.report.requests)]
        else:
            self.report.requests += _BURST - 1
            numbers = [self.report.requests + each for each in range(_BURST)]
            answers = list(self._threads.map(self._send, [attempt] * _BURST, numbers))
        self.report.slowest = max(
            self.report.slowest, (time.monotonic() - begun, attempt.curl(self.runtime.url))
        )
        for answer in answers:
            self._judge(attempt, answer, endpoint)

    def _send(self, attempt: Attempt, number: int) -> Answer:
        try:
            return send(attempt, port=self.runtime.port, number=number)
        except OSError as error:
            return Answer(problem=f"no connection: {error}")

    def _judge(self, attempt: Attempt, answer: Answer, endpoint: Endpoint) -> None:
        name = " ".join(attempt.route)
        try:
            code = judge(attempt, answer, endpoint=endpoint)
        except Wrong as wrong:
            self._fail(f"{name}: {wrong}\n    {attempt.curl(self.runtime.url)}{self._news()}")
            return
        if code:
            self.report.codes[name, code] += 1
            if code not in (*endpoint.errors, *_EVERYWHERE) and attempt.is_plain:
                self.report.undeclared.add((name, code))
        elif answer.status in (101, 200):
            self.report.codes[name, "ok"] += 1
            self._learn(attempt, answer)

    def _learn(self, attempt: Attempt, answer: Answer) -> None:
        learned = self._learned[kind_of(attempt.route[1])]
        with suppress(ValueError, AttributeError):
            body = json.loads(answer.body)
            for key in ("id", "processId", "sessionId", "uploadId", "terminalId", "backupId"):
                if isinstance(found := body.get(key), str) and found not in learned:
                    learned.append(found)

    def _fail(self, text: str) -> None:
        kind = text[:80]
        self.report.kinds[kind] += 1
        if self.report.kinds[kind] > _ALIKE:
            return
        sys.stderr.write(f"FAILED {text}\n")
        self.report.failures.append(text)

    def _news(self) -> str:
        """What the runtime has logged of failures since the last one."""
        failures = self.runtime.failures()
        news, self._seen_failures = failures[self._seen_failures :], len(failures)
        return "".join(f"\n    {_cause(line)}" for line in news[:3])

    def _footprint(self) -> tuple[int, int]:
        return self.runtime.descriptors(), self.runtime.memory()

    def _check_end(self, before: tuple[int, int]) -> None:
        """Everything is deleted; then nothing may be left of it."""
        self._expect("the runtime lives", lambda: self.runtime.process.poll() is None)
        if self.runtime.process.poll() is not None:
            return
        self._delete_everything()
        # What is polled stays watched for a while, unless it goes away.
        workspace = self.runtime.workspace
        workspace.rename(workspace.with_name("gone"))
        self._expect("no process is left", lambda: self.runtime.descendants() == {}, self.runtime.descendants)
        self._expect("no inotify is left", lambda: scratch.inotifies(self.runtime) == 0)
        self._expect(
            "no descriptor is left",
            lambda: self.runtime.descriptors() <= before[0] + _SPARE_DESCRIPTORS,
            lambda: _descriptors(self.runtime.pid),
        )
        places = (workspace.with_name("gone"), self._home)
        self._expect(
            "no temporary file is left",
            lambda: not scratch.temporary(*places),
            lambda: scratch.temporary(*places),
        )
        grown = self.report.grown = self.runtime.memory() - before[1]
        self._expect(f"it has grown by {grown} MiB only", lambda: grown <= _GROWTH_MIB)
        self._expect("it answers", lambda: self._get("/api/ping")["success"])
        self._expect(
            "its log is clean",
            lambda: self.runtime.failures() == [],
            lambda: {_cause(each) for each in self.runtime.failures()},
        )
        workspace.with_name("gone").rename(workspace)
        self._expect("it ends in good order", lambda: self.runtime.stop() == TERMINATED)
        left = scratch.elsewhere() - self._elsewhere
        self._expect("nothing is left where everybody may write", lambda: not left, lambda: left)

    def _delete_everything(self) -> None:
        self._call("DELETE", "/api/process/kill-all")
        for session in self._get("/api/session/list").get("data", []):
            self._call("POST", "/api/session/delete", {"sessionId": session})
        for terminal in self._get("/api/terminal/list").get("terminals", []):
            self._call("POST", "/api/terminal/destroy", {"id": terminal["id"]})
        for name in self._learned["files"]:
            self._call("DELETE", f"/api/files/uploads/{quote(name, safe='')}")

    def _expect(self, what: str, check: Any, detail: Any = lambda: "") -> None:
        try:
            eventually(check, timeout=10, every=0.05)
        except AssertionError:
            self._fail(f"at the end: {what}: not so: {detail()}")

    def _get(self, path: str) -> Json:
        return self._call("GET", path) or {}

    def _call(self, method: str, path: str, body: Json | None = None) -> Json | None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.runtime.url + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.loads(response.read())
        except OSError:
            return None


_EVERYWHERE = (
    "VALIDATION_FAILED", "UNAUTHENTICATED", "PERMISSION_DENIED", "FILE_TOO_LARGE", "RESOURCE_BUSY",
    "UNKNOWN_ERROR", "plain text",
)  # fmt: skip


def _cause(line: Json) -> str:
    """The last steps and the error of a logged exception."""
    steps = [each.strip() for each in line.get("exception", "").splitlines()]
    return f"{line['message']}: " + " < ".join(reversed(steps[-9:]))


def _descriptors(pid: int) -> list[str]:
    found: list[str] = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return sorted(found)
