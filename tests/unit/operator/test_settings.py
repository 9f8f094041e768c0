"""What the chart says, and what is not understood of it."""

import json

import pytest
from sandpod_operator.errors import BadSettings
from sandpod_operator.metrics import Metrics
from sandpod_operator.settings import RuntimeMount, read_settings

GIVEN = {
    "systemNamespace": "sandpod-system",
    "sandboxImage": "sandpod/sandbox:0.1.0",
    "builtInImages": ["sandpod/sandbox:*"],
    "runtimeImage": "sandpod/runtime:0.1.0",
    "runtimeMount": "Auto",
    "imagePullPolicy": "IfNotPresent",
    "imagePullSecrets": ["registry"],
    "defaults": {"user": 1000, "resources": {"limits": {"cpu": "2", "memory": "2Gi"}}},
    "keySecret": "sandpod-key",
    "tlsSecret": "sandpod-gateway-tls",
    "gatewayService": "sandpod-gateway",
    "apiService": "v1alpha1.run.sandpod.dev",
    "certificates": "Managed",
    "startTimeoutSeconds": 60,
    "protectFromDrain": True,
    "protectFromDrainSeconds": 3600,
    "releaseLabels": {"app.kubernetes.io/name": "sandpod", "app.kubernetes.io/instance": "sandpod"},
    "network": {
        "clusterRanges": ["10.0.0.0/8", "fc00::/7"],
        "dns": {"namespace": "kube-system", "podLabels": {"k8s-app": "kube-dns"}, "ports": [53]},
        "detectEnforcement": True,
    },
    "canaryPolicy": "sandpod-operator",
    "logLevel": "info",
}


def test_everything_that_the_chart_says_is_understood() -> None:
    settings = read_settings({"SANDPOD_SETTINGS": json.dumps(GIVEN)})

    assert settings.runtime_mount is RuntimeMount.AUTO
    assert settings.defaults.resources["limits"]["memory"] == "2Gi"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "SANDPOD_SETTINGS is not set"),
        ("", "SANDPOD_SETTINGS is not set"),
        ("{", "Invalid JSON"),
        (json.dumps({**GIVEN, "sandboxImag": "x"}), "sandboxImag: Extra inputs are not permitted"),
        (json.dumps({**GIVEN, "runtimeMount": "Magic"}), "runtimeMount: Input should be 'Auto'"),
        (json.dumps({**GIVEN, "defaults": {"user": 0}}), "defaults.user: Input should be greater than"),
        (
            json.dumps({**GIVEN, "network": {"clusterRanges": ["10.0.0.1/8"]}}),
            "10.0.0.1/8 has host bits set",
        ),
        (
            json.dumps({**GIVEN, "network": {"dns": {"nodeLocal": "dns.example.com"}}}),
            "'dns.example.com' does not appear to be an IPv4 or IPv6 address",
        ),
        (json.dumps({}), "sandboxImage: Field required; runtimeImage: Field required"),
    ],
)
def test_what_is_not_understood_is_named(text: str | None, sentence: str) -> None:
    with pytest.raises(BadSettings) as error:
        read_settings({} if text is None else {"SANDPOD_SETTINGS": text})

    assert sentence in str(error.value)


def test_the_metrics_are_text_that_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.api_writes.add(verb="create", resource="pods")
    metrics.api_writes.add(2, verb="create", resource='odd "name"\n')
    metrics.gauge("queue_depth", "Waiting.", lambda: 3)
    metrics.gauge("sandboxes", "By phase.", lambda: {"Running": 2, "Failed": 0.5}, label="phase")

    lines = metrics.text().splitlines()

    assert 'sandpod_operator_api_writes_total{resource="pods",verb="create"} 1' in lines
    assert 'sandpod_operator_api_writes_total{resource="odd \\"name\\"\\n",verb="create"} 2' in lines
    assert "# TYPE sandpod_operator_api_writes_total counter" in lines
    assert "sandpod_operator_queue_depth 3" in lines
    assert 'sandpod_operator_sandboxes{phase="Failed"} 0.5' in lines
    assert metrics.api_writes.value(verb="create") == 3
