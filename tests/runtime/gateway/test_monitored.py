"""The chart's alerts and dashboard read of the gateway what a real one tells."""

from tests.support.gateway_harness import Harness
from tests.support.monitoring import alerts, dashboard_queries, names_in, names_told


async def test_what_alerts_and_dashboard_read_of_the_gateway_is_told(gateway: Harness) -> None:
    read = names_in([*dashboard_queries(), *(alert["expr"] for alert in alerts())])
    ours = {name for name in read if name.startswith("sandpod_gateway_")}

    assert len(ours) > 5
    assert ours - names_told(await gateway.metrics()) == set()
