"""`make bench-scale`: what thousands of sandboxes cost the operator, on simulated nodes."""

import argparse
import contextlib
import datetime
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from tests.bench.api import Api, RefusedError
from tests.bench.cluster import ENV, KUBECONFIG, ROOT
from tests.bench.scale import nodes
from tests.bench.scale.measure import PODS, SANDBOXES, Run
from tests.bench.scale.operator_process import NAMESPACE, Operator, alone
from tests.bench.scale.processes import Program, wait_for
from tests.bench.scale.rows import section
from tests.bench.stats import machine, publish, table

CONTROL_PORT = 3000


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-scale", description=__doc__)
    parser.add_argument("--sandboxes", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--raw-pods", type=int, default=500, help="for comparison (default 500)")
    parser.add_argument("--idle", type=float, default=60, help="seconds of quiet (default 60)")
    parser.add_argument(
        "--no-publish", action="store_true", help="only print, leave docs/benchmarks.md as it is"
    )
    options = parser.parse_args()
    if not 1 <= options.sandboxes <= 20_000 or not 1 <= options.raw_pods <= 20_000:
        parser.error("from 1 to 20000")
    # So that nothing is left either when somebody ends it.
    signal.signal(signal.SIGTERM, _end)
    load = os.getloadavg()[0]
    api = Api(KUBECONFIG)
    with tempfile.TemporaryDirectory(prefix="sandpod-scale-") as temporary:
        directory = Path(temporary)
        with alone(), _namespace(api), _everything(api, directory, options.sandboxes) as operator:
            run = Run(
                api,
                operator,
                sandboxes=options.sandboxes,
                raw_pods=options.raw_pods,
                idle=options.idle,
            )
            result = run.measure()
    busy = f"whose load average was {load:.1f} before the run"
    text = f"Measured on {datetime.date.today()}, {machine()}, kind, {busy}.\n\n{table([section(result)])}"
    print(text)
    if not options.no_publish:
        publish(text, ROOT / "docs/benchmarks.md", place="scale")


def _end(*_: object) -> None:
    sys.exit(143)


@contextlib.contextmanager
def _everything(api: Api, directory: Path, sandboxes: int) -> Generator[Operator]:
    address = nodes.own_address(api)
    count = sandboxes // nodes.PODS_EACH + 2
    stub = [sys.executable, "-m", "tests.bench.scale.stub", address, str(CONTROL_PORT)]
    operator = Operator(directory)
    with (
        Program(*stub, log=directory / "stub.log", env=ENV, cwd=ROOT) as runtime,
        nodes.simulated(api, count=count, address=address, directory=directory),
    ):
        try:
            operator.start()
            wait_for("the operator has started", operator.converged, within=60)
            runtime.check()
            yield operator
        finally:
            _empty(api, operator)


def _empty(api: Api, operator: Operator) -> None:
    """While there is somebody to see the pods off."""
    for path in (SANDBOXES, PODS):
        with contextlib.suppress(RefusedError):
            api.raw("DELETE", path)
    operator.stop()
    wait_for("all pods are gone", lambda: _none(api, PODS), within=300, every=2)


@contextlib.contextmanager
def _namespace(api: Api) -> Generator[None]:
    # Of a run that was killed, or of one that is just ending.
    nodes.remove(api)
    _remove_namespace(api)
    api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    try:
        yield
    finally:
        _remove_namespace(api)


def _remove_namespace(api: Api) -> None:
    try:
        api.raw("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    except RefusedError as refused:
        if refused.status not in (404, 409):
            raise
    wait_for("the namespace is gone", lambda: _no_namespace(api), within=300, every=1)


def _none(api: Api, path: str) -> bool:
    return not api.request("GET", f"{path}?limit=1")["items"]


def _no_namespace(api: Api) -> bool:
    try:
        api.raw("GET", f"/api/v1/namespaces/{NAMESPACE}")
    except RefusedError as refused:
        return refused.status == 404
    return False


if __name__ == "__main__":
    main()
