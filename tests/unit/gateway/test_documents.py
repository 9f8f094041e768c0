"""What the gateway says without asking anybody: discovery, Status objects, metrics, audit lines, settings."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from sandpod_gateway import discovery
from sandpod_gateway.audit import Exchange, accept_traceparent, entry, trace_id
from sandpod_gateway.errors import BrokenOff, Denied, NotReady, status_object, unknown_sandbox
from sandpod_gateway.framing import Framing
from sandpod_gateway.metrics import Metrics
from sandpod_gateway.settings import Settings

# What kube-aggregator 1.36 asks with
AGGREGATOR = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)


def test_both_forms_of_discovery_name_the_same_subresources() -> None:
    old = discovery.RESOURCES["resources"]
    (parent,) = json.loads(discovery.AGGREGATED)["items"][0]["versions"][0]["resources"]
    new = parent["subresources"]

    assert [resource["name"] for resource in old] == [
        "sandboxes/proxy",
        "sandboxes/ports",
        "sandboxes/sleep",
        "sandboxes/wake",
    ]
    assert [f"{parent['resource']}/{each['subresource']}" for each in new] == [each["name"] for each in old]
    assert [each["verbs"] for each in new] == [each["verbs"] for each in old]
    # Clients skip what has no kind: the sub-resources must have one, and their parent must not.
    assert [each["responseKind"]["kind"] for each in new] == [each["kind"] for each in old]
    assert parent["responseKind"]["kind"] == ""


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (AGGREGATOR, True),
        ("application/json", False),
        ("*/*", False),
        ("", False),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", False),
        ("application/json; v=v2; as=APIGroupDiscoveryList; g=apidiscovery.k8s.io; q=0.5", True),
    ],
)
def test_the_newer_discovery_is_for_those_who_ask_for_it(accept: str, wanted: bool) -> None:
    assert discovery.wants_aggregated(accept) is wanted


def test_a_refusal_is_a_status_object_that_kubectl_can_show() -> None:
    assert status_object(NotReady("not yet", name="hello")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "not yet",
        "reason": "ServiceUnavailable",
        "details": {"name": "hello", "group": "sandpod.dev", "kind": "sandboxes", "retryAfterSeconds": 1},
        "code": 503,
    }
    assert status_object(unknown_sandbox(namespace="a", name="b"))["code"] == 404
    assert status_object(Denied("no"))["reason"] == "Forbidden"
    assert "details" not in status_object(BrokenOff("gone"))


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00-abc-def-00",
        f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01",
        f"ff-{'1' * 32}-{'1' * 16}-01",
        f"00-{'A' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-01\n",
    ],
)
def test_a_trace_that_is_not_well_formed_is_replaced(header: str | None) -> None:
    made = accept_traceparent(header)

    assert made != header
    assert accept_traceparent(made) == made
    assert len(trace_id(made)) == 32


def test_a_well_formed_trace_is_kept() -> None:
    given = f"00-{'a' * 32}-{'b' * 16}-01"

    assert accept_traceparent(given) == given
    assert trace_id(given) == "a" * 32


def test_an_audit_line_says_who_did_what_where_and_how_it_ended() -> None:
    exchange = Exchange(
        door="aggregated",
        method="POST",
        path="/apis/x",
        source="10.0.0.9",
        traceparent=f"00-{'a' * 32}-{'b' * 16}-01",
        user="jane",
        namespace="default",
        sandbox="hello",
        verb="create",
        subresource="exec",
        status=200,
    )

    line = entry(exchange, now=datetime(2030, 1, 2, 3, 4, 5, 678000, UTC))

    assert line.pop("seconds") >= 0
    assert line == {
        "time": "2030-01-02T03:04:05.678Z",
        "audit": "aggregated",
        "user": "jane",
        "verb": "create",
        "subresource": "exec",
        "namespace": "default",
        "sandbox": "hello",
        "method": "POST",
        "path": "/apis/x",
        "status": 200,
        "source": "10.0.0.9",
        "traceId": "a" * 32,
    }


def test_metrics_are_prometheus_text() -> None:
    metrics = Metrics(gauges={"routes": ("Routes.", lambda: 3), "watch_age_seconds": ("Age.", lambda: None)})
    metrics.request(door="aggregated", code=200, seconds=0.003)
    metrics.request(door="aggregated", code=503, seconds=1000)

    lines = metrics.text().splitlines()

    assert 'sandpod_gateway_requests_total{door="aggregated",code="200"} 1' in lines
    assert 'sandpod_gateway_request_duration_seconds_bucket{door="aggregated",le="0.0025"} 0' in lines
    assert 'sandpod_gateway_request_duration_seconds_bucket{door="aggregated",le="0.005"} 1' in lines
    assert 'sandpod_gateway_request_duration_seconds_bucket{door="aggregated",le="+Inf"} 2' in lines
    assert 'sandpod_gateway_request_duration_seconds_count{door="aggregated"} 2' in lines
    assert "sandpod_gateway_routes 3" in lines
    assert not any("watch_age" in line for line in lines)


def test_a_chunk_never_ends_a_body_before_its_end() -> None:
    assert Framing.CHUNKED.frame(b"") == b""
    assert Framing.CHUNKED.frame(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"
    assert Framing.CHUNKED.end == b"0\r\n\r\n"
    assert Framing.LENGTH.frame(b"x") == b"x"
    assert Framing.LENGTH.end == b""


def test_settings_have_defaults_and_camel_case_names() -> None:
    assert Settings.from_json("") == Settings()
    given = {"systemNamespace": "ns", "authorizationCacheSeconds": 0, "httpsPort": 1}
    settings = Settings.from_json(json.dumps(given))

    assert (settings.system_namespace, settings.authorization_cache_seconds, settings.https_port) == (
        "ns",
        0,
        1,
    )


@pytest.mark.parametrize("given", [{"htttpsPort": 1}, {"logLevel": "loud"}, {"httpsPort": 70000}, []])
def test_a_misspelt_setting_is_an_error(given: Any) -> None:
    with pytest.raises(ValidationError):
        Settings.from_json(json.dumps(given))


def test_draining_fits_into_the_pods_grace() -> None:
    settings = Settings()

    assert settings.drain_delay_seconds + settings.drain_seconds < 30
