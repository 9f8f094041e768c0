"""A server of external metrics in the cluster, with one metric whose value a test sets: what an autoscaler
goes by.
"""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

import yaml

from tests.support.cluster import ROOT, Json, apply, kubectl
from tests.support.gateway_certificates import Authority

GROUP = "external.metrics.k8s.io"
API_SERVICE = f"v1beta1.{GROUP}"
METRIC = "waiting"
# The group's own document too: without it, no namespace could be deleted while this runs.
SCRIPT = f"""
import http.server, json, pathlib, ssl

LIST = "ExternalMetricValueList"
RESOURCE = dict(name="{METRIC}", singularName="", namespaced=True, kind=LIST, verbs=["get"])

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/apis/{GROUP}/v1beta1":
            self.answer("APIResourceList", "v1", groupVersion="{GROUP}/v1beta1", resources=[RESOURCE])
        elif path.endswith("/{METRIC}"):
            value = pathlib.Path("/tmp/value").read_text().strip()
            told = dict(metricName="{METRIC}", metricLabels={{}}, timestamp="2030-01-01T00:00:00Z")
            item = dict(told, value=value)
            self.answer(LIST, "{GROUP}/v1beta1", metadata={{}}, items=[item])
        else:
            self.send_error(404)

    def answer(self, kind, version, **content):
        data = json.dumps(dict(kind=kind, apiVersion=version, **content)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/given/tls.crt", "/given/tls.key")
server = http.server.ThreadingHTTPServer(("", 6443), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class MetricsServer:
    namespace: str

    def say(self, value: str) -> None:
        kubectl("exec", "-n", self.namespace, "metrics", "--", "sh", "-c", f"echo {value} > /tmp/value")


@contextlib.contextmanager
def metrics_server(namespace: str, *, value: str) -> Generator[MetricsServer]:
    """While it is there, the metric `waiting` has this value in every namespace."""
    apply(*_objects(namespace, value=value))
    try:
        kubectl("wait", "-n", namespace, "pod/metrics", "--for=condition=Ready", "--timeout=100s")
        kubectl("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available", "--timeout=100s")
        yield MetricsServer(namespace)
    finally:
        kubectl("delete", "apiservice", API_SERVICE, "--ignore-not-found")


def _objects(namespace: str, *, value: str) -> list[Json]:
    own = {"name": "metrics", "namespace": namespace}
    pair = Authority("metrics").issue("metrics", dns=(f"metrics.{namespace}.svc",))
    given = {"script.py": SCRIPT, "tls.crt": pair.certificate, "tls.key": pair.key}
    image = yaml.safe_load((ROOT / "build/images.yaml").read_text())["images"]["sandbox"]
    container: Json = {
        "name": "metrics",
        "image": f"{image['repository']}:{image['tag']}",
        "command": ["sh", "-c", f"echo {value} > /tmp/value && exec python3 /given/script.py"],
        "readinessProbe": {"tcpSocket": {"port": 6443}, "periodSeconds": 1},
        "volumeMounts": [{"name": "given", "mountPath": "/given"}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "given", "secret": {"secretName": "metrics"}}],
        "terminationGracePeriodSeconds": 0,
    }
    service = {"selector": {"app": "metrics"}, "ports": [{"port": 443, "targetPort": 6443}]}
    registration = {
        "group": GROUP,
        "version": "v1beta1",
        "service": own,
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": own, "stringData": given},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**own, "labels": {"app": "metrics"}}, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": own, "spec": service},
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": registration,
        },
    ]
