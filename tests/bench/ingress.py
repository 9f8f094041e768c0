"""Large bodies and a WebSocket to a program in a sandbox: at its pod, through the gateway, and through an
ingress controller before it. From the gateway's pod, so that all of it stays in the cluster.
"""

import shlex
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench import bodies, large_program
from tests.bench import pods as on
from tests.bench.api import Api, Json
from tests.bench.cluster import python_in
from tests.bench.stats import Row, Section, ms, p50, p99
from tests.support import ingress
from tests.support.waiting import eventually

NAME = "large"
PORT = 8000
PROGRAM = Path(large_program.__file__).read_text()
CLIENT = Path(bodies.__file__).read_text()


def measure(api: Api) -> Section:
    """One sandbox; the ways in turn."""
    process = {"name": "program", "command": f"exec python3 -c {shlex.quote(PROGRAM)} {PORT}", "port": PORT}
    spec: Json = {"keepAlive": True, "ports": [{"port": PORT}], "processes": [process]}
    api.request("POST", on.SANDBOXES, on.manifest(NAME, spec))
    status = eventually(lambda: _running(api), timeout=60)
    url: str = status["ports"][0]["url"]
    host = urlsplit(url).netloc
    with ingress.controller() as controller:
        eventually(lambda: _is_served(controller.preview(url)), timeout=60)
        ways = {
            "at the pod": (status["podIP"], PORT),
            "through the gateway": ("127.0.0.1", 8080),
            "through Traefik and the gateway": (f"{ingress.NAME}.{ingress.NAMESPACE}", ingress.PORTS["http"]),
        }
        found = {what: _figures(*place, host) for what, place in ways.items()}
    api.request("DELETE", f"{on.SANDBOXES}/{NAME}")
    rows = [_row(what, figures) for what, figures in found.items()]
    return Section(title="Previews: 1 GiB and a WebSocket, in the cluster, all on the same cores", rows=rows)


def _row(what: str, figures: Json) -> Row:
    rates = [f"{figures[way] / 1e6:.0f} MB/s {way}" for way in ("down", "up", "echo")]
    trips = figures["round_trips"]
    return Row(
        what=what,
        figure=", ".join(rates),
        goal="≥ 300 MB/s" if what == "through the gateway" else "",
        how=f"a small message and its echo: {ms(p50(trips))} / {ms(p99(trips))} (p50 / p99)",
    )


def _running(api: Api) -> Json | None:
    """Its status, once there is an address and a URL in it."""
    status: Json = api.request("GET", f"{on.SANDBOXES}/{NAME}").get("status") or {}
    return status if status.get("phase") == "Running" and status["ports"][0].get("url") else None


def _is_served(preview: ingress.Preview) -> bool:
    with preview.client() as client:
        return client.get("/").status_code == 200


def _figures(address: str, port: int, host: str) -> Json:
    return python_in("sandpod-gateway", CLIENT, address, str(port), host)
