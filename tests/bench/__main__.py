"""`make bench`: measures everything in one run, prints the table, and writes it into docs/benchmarks.md."""

import argparse
import datetime
import json

from tests.bench import (
    claims,
    cold_start,
    exec_latency,
    footprint,
    ingress,
    loopback,
    pods,
    previews,
    race,
    runtime_start,
    transfers,
    wake,
    writes,
)
from tests.bench.api import Api
from tests.bench.cluster import KUBECONFIG, ROOT, SYSTEM, kubectl
from tests.bench.stats import Section, machine, publish, table


def main() -> None:
    """Every suite, one after the other: two at once would measure each other."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="cold starts of each kind (default 20)")
    parser.add_argument(
        "--no-publish", action="store_true", help="only print, leave docs/benchmarks.md as it is"
    )
    parser.add_argument(
        "--loopback",
        action="store_true",
        help="only the runtime on loopback: needs no cluster, not published",
    )
    parser.add_argument(
        "--previews",
        action="store_true",
        help="only previews through HAProxy and the gateway on loopback, beside nginx, not published",
    )
    parser.add_argument(
        "--race",
        type=int,
        nargs="?",
        const=1000,
        metavar="ROUNDS",
        help="only requests that meet sandboxes falling asleep, through the API and by preview URLs "
        "(1,000 rounds of each, half an hour)",
    )
    options = parser.parse_args()
    if options.race:
        _tell(table(_race(options.race)), place="race", publishing=not options.no_publish)
        return
    if options.previews:
        print(table(previews.measure()))
        return
    if options.loopback:
        print(table(_without_a_cluster(options.rounds)))
        return
    _tell(table(run(options.rounds)), place="figures", publishing=not options.no_publish)


def _tell(tables: str, *, place: str, publishing: bool) -> None:
    text = f"Measured on {datetime.date.today()}, {machine()}, kind, one node.\n\n{tables}"
    print(text)
    if publishing:
        publish(text, ROOT / "docs/benchmarks.md", place=place)


def run(rounds: int) -> list[Section]:
    """The sections in the order of the page."""
    # First, for the cluster goes on clearing away after its own suites.
    alone = _without_a_cluster(rounds)
    api = Api(KUBECONFIG)
    pods.prepare(api)
    try:
        return [
            cold_start.measure(api, rounds=rounds),
            wake.measure(Api(KUBECONFIG), rounds=rounds),
            claims.measure(Api(KUBECONFIG), rounds=rounds),
            runtime_start.measure(_default_image(), rounds=rounds),
            # A new connection for each: the API server closes one that was idle through the suite before.
            exec_latency.measure(Api(KUBECONFIG), rounds=200),
            ingress.measure(Api(KUBECONFIG)),
            footprint.measure(Api(KUBECONFIG)),
            writes.measure(Api(KUBECONFIG), sandboxes=5),
            *alone,
        ]
    finally:
        pods.clean_up(Api(KUBECONFIG))


def _race(rounds: int) -> list[Section]:
    api = Api(KUBECONFIG)
    pods.prepare(api)
    try:
        return [race.measure(api, rounds=rounds, previews=previews) for previews in (False, True)]
    finally:
        pods.clean_up(Api(KUBECONFIG))


def _without_a_cluster(rounds: int) -> list[Section]:
    return [*loopback.measure(rounds=rounds * 10), *transfers.measure(), *previews.measure()]


def _default_image() -> str:
    path = "jsonpath={.spec.template.spec.containers[0].env[?(@.name=='SANDPOD_SETTINGS')].value}"
    settings = kubectl("get", "deploy", "-n", SYSTEM, "sandpod-operator", "-o", path)
    return json.loads(settings)["sandboxImage"]


if __name__ == "__main__":
    main()
