"""The chart's alerts and dashboard read of the gateway what a real one tells, and it tells its own failures
from those of what people run in sandboxes.
"""

import re

import pytest
from sandpod_gateway import errors
from sandpod_gateway.resolver import Resolver

from tests.support.gateway_harness import Harness, proxy_path
from tests.support.gateway_previews import exposed
from tests.support.monitoring import ROOT, alerts, dashboard_queries, names_in, names_told

RUNBOOK = ROOT / "docs/runbooks/SandpodGatewayErrors.md"


async def refusals(gateway: Harness) -> list[str]:
    name = "sandpod_gateway_refusals_total"
    return [line.removeprefix(name) for line in (await gateway.metrics()).splitlines() if f"{name}{{" in line]


async def test_what_alerts_and_dashboard_read_of_the_gateway_is_told(gateway: Harness) -> None:
    read = names_in([*dashboard_queries(), *(alert["expr"] for alert in alerts())])
    ours = {name for name in read if name.startswith("sandpod_gateway_")}

    assert len(ours) > 5
    assert ours - names_told(await gateway.metrics()) == set()


async def test_the_error_of_a_program_is_no_failure_of_the_gateway(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.raw_program(answer=b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
    assert (await gateway.preview("GET", host=host)).status == 500

    assert 'requests_total{door="web",code="500"} 1' in await gateway.metrics()
    assert await refusals(gateway) == []


async def test_the_error_of_a_runtime_is_no_failure_of_the_gateway(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
    assert (await hello.request("POST", proxy_path("hello"))).status == 500

    assert await refusals(hello) == []


async def test_what_the_gateway_refuses_is_counted_by_what_kept_it(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"", hang_up=True)
    assert (await hello.request("POST", proxy_path("hello"))).status == 502
    assert (await hello.request("POST", proxy_path("unknown"))).status == 404

    assert await refusals(hello) == [
        '{door="aggregated",code="404",reason="NotFound"} 1',
        '{door="aggregated",code="502",reason="BrokenOff"} 1',
    ]


async def test_a_program_that_breaks_off_is_told_from_a_runtime_that_does(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.raw_program(answer=b"no HTTP\r\n\r\n", hang_up=True)
    assert (await gateway.preview("POST", host=host)).status == 502

    assert await refusals(gateway) == ['{door="web",code="502",reason="ProgramBrokeOff"} 1']


async def test_that_nobody_listens_is_counted_with_the_status_of_its_page(gateway: Harness) -> None:
    host = await exposed(gateway)
    assert (await gateway.preview("GET", host=host)).status == 502

    assert await refusals(gateway) == ['{door="web",code="502",reason="NobodyListens"} 1']


async def test_a_mistake_of_ours_is_a_failure(hello: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    async def mistake(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Resolver, "ready_route", mistake)
    assert (await hello.request("POST", proxy_path("hello"))).status == 500

    assert await refusals(hello) == ['{door="aggregated",code="500",reason="Failed"} 1']
    assert hello.audit_lines()[-1]["reason"] == "InternalError"


def test_the_alert_counts_what_the_gateway_refuses_without_what_is_its_users_affair() -> None:
    (alert,) = (each for each in alerts() if each["alert"] == "SandpodGatewayErrors")
    failures, _, all_of_them = alert["expr"].partition(" / ")
    left_out = re.search(r'code=~"5..",reason!~"([^"]+)"', failures)

    assert names_in([failures]) == {"sandpod_gateway_refusals_total"}
    assert names_in([all_of_them]) == {"sandpod_gateway_requests_total"}
    assert left_out is not None
    kinds = [getattr(errors, name) for name in left_out[1].split("|")]
    assert all(issubclass(kind, errors.Refusal) and kind.code >= 500 for kind in kinds)
    assert [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in RUNBOOK.read_text()] == []
