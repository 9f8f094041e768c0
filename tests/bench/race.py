"""Requests thrown at sandboxes in the very moment they fall asleep: how many failed, how long they took."""

from functools import partial
from urllib.parse import urlsplit

import httpx

from tests.bench.api import Api, Json
from tests.bench.pods import NAMESPACE, SANDBOXES, manifest
from tests.bench.stats import Row, Section, ms, p50, p99
from tests.support.cluster import api_client
from tests.support.gateway_race import AWAKE, JITTER, PREVIEW_SPEC, SPEC, Outcome, race
from tests.support.waiting import eventually

SIDE_BY_SIDE = 4


def measure(api: Api, *, rounds: int, previews: bool = False) -> Section:
    """Some sandboxes side by side, each alone with its requests: through the API server or to previews."""
    spec = PREVIEW_SPEC if previews else SPEC
    kind = "visited" if previews else "asked"
    names = [f"{kind}-{number}" for number in range(SIDE_BY_SIDE)]
    for name in names:
        api.request("POST", SANDBOXES, manifest(name, spec))
    for name in names:
        # Once it has been ready; it may be asleep again by now.
        eventually(lambda path=f"{SANDBOXES}/{name}": _has_started(api.request("GET", path)), timeout=60)
    clients = {name: partial(preview_client, _url(api, name)) for name in names} if previews else None
    outcome = race(api_client, namespace=NAMESPACE, names=names, rounds=rounds, previews=clients)
    for name in names:
        api.request("DELETE", f"{SANDBOXES}/{name}")
    for failure in outcome.failures[:20]:
        print(failure)
    where = "by preview URLs" if previews else "through the API server"
    return Section(title=f"Falling asleep, {where} ({outcome.rounds:,} rounds)", rows=_rows(outcome))


def _url(api: Api, name: str) -> str:
    path = f"{SANDBOXES}/{name}"
    shown = eventually(lambda: api.request("GET", path).get("status", {}).get("ports"), timeout=30)
    return shown[0]["url"]


def preview_client(url: str) -> httpx.Client:
    """By the node port that `make install` has mapped to loopback."""
    host = urlsplit(url)
    base = f"http://127.0.0.1:{host.port or 80}"
    return httpx.Client(base_url=base, headers={"Host": host.netloc}, timeout=60, trust_env=False)


def _has_started(sandbox: Json) -> bool:
    return sandbox.get("status", {}).get("phase") in ("Running", "Asleep")


def _rows(outcome: Outcome) -> list[Row]:
    phases = ", ".join(f"{count} {phase}" for phase, count in sorted(outcome.phases.items()))
    woken = [took for took in outcome.seconds if took > AWAKE]
    return [
        Row(
            what="requests that failed",
            figure=f"{len(outcome.failures)} of {len(outcome.seconds)}",
            goal="0",
            how=f"three at once, {ms(JITTER)} around the end of sleepAfter, a quarter of them later",
        ),
        Row(
            what="requests that met a sandbox going to sleep or asleep",
            figure=str(outcome.waited),
            how=f"answered after more than {ms(AWAKE)}",
        ),
        Row(
            what="until these were answered",
            figure=f"{ms(p50(woken))} / {ms(p99(woken))}" if len(woken) > 1 else "none",
            how="p50 / p99",
        ),
        Row(what="wakes", figure=str(outcome.wakes), how="by the sandboxes' status"),
        Row(
            what="at the end", figure=phases, goal=f"{SIDE_BY_SIDE} Asleep", how="phases, 30 s later at most"
        ),
    ]
