"""A real ingress controller in the cluster, Traefik, and the addresses of previews behind it."""

import contextlib
import json
import socket
import ssl
from collections.abc import Generator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from tests.support.cluster import ROOT, Json, apply, get, kubectl, run
from tests.support.gateway_certificates import Authority
from tests.support.waiting import eventually

NAMESPACE = "e2e-ingress"
DOMAIN = "sandpod.localhost"
NAME = "traefik"
_LABELS = {"app.kubernetes.io/name": NAME}
# Seconds after which somebody who has not answered never will.
_SILENCE = 4
PORTS = {"http": 8000, "https": 8443}
_DEFAULT_CERTIFICATE = {"certFile": "/tls/tls.crt", "keyFile": "/tls/tls.key"}
_FILE = json.dumps({"tls": {"stores": {"default": {"defaultCertificate": _DEFAULT_CERTIFICATE}}}})
_ARGUMENTS = (
    *(f"--entryPoints.{name}.address=:{port}" for name, port in PORTS.items()),
    "--entryPoints.https.http.tls=true",
    "--providers.kubernetesIngress=true",
    "--providers.file.filename=/tls/traefik.yaml",
    "--ping=true",
    "--ping.entryPoint=http",
    "--global.checkNewVersion=false",
    "--global.sendAnonymousUsage=false",
    "--log.level=INFO",
)


@dataclass(frozen=True)
class Ingress:
    """Where it listens, and the authority behind its certificate."""

    # The node's: what kind maps to loopback is taken by the gateway's own node port.
    address: str
    http: int
    https: int
    authority: str

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority)

    def preview(self, url: str) -> "Preview":
        return Preview(self, url)

    def pod_address(self) -> str:
        """Whom the gateway sees."""
        (pod,) = get("pods", "-n", NAMESPACE)["items"]
        return pod["status"]["podIP"]


@dataclass(frozen=True)
class Preview:
    """A preview's URL. Its name need not be known to this machine."""

    ingress: Ingress
    url: str

    @property
    def host(self) -> str:
        """As a browser writes it into the header."""
        return urlsplit(self.url).netloc

    @property
    def name(self) -> str:
        return self.host.partition(":")[0]

    def at(self, path: str, *, scheme: str = "http") -> str:
        """Whom to connect to instead; the header Host has to say who is meant."""
        port = self.ingress.https if scheme in ("https", "wss") else self.ingress.http
        return f"{scheme}://{self.ingress.address}:{port}{path}"

    def client(self, *, scheme: str = "http", **headers: str) -> httpx.Client:
        def name_it(request: httpx.Request) -> None:
            request.extensions["sni_hostname"] = self.name

        return httpx.Client(
            base_url=self.at("", scheme=scheme),
            headers={"Host": self.host, **headers},
            verify=self.ingress.trust,
            timeout=60,
            trust_env=False,
            event_hooks={"request": [name_it]},
        )

    def raw(self, request: bytes) -> bytes:
        """All that is answered to these bytes until the connection ends or nothing more comes. They are not
        followed by an end, which to some servers means that nobody waits for an answer.
        """
        address = (self.ingress.address, self.ingress.http)
        with socket.create_connection(address, timeout=_SILENCE) as connection:
            answer = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                connection.sendall(request)
                while piece := connection.recv(65_536):
                    answer += piece
            return answer


@contextlib.contextmanager
def controller() -> Generator[Ingress]:
    """It is there, and takes the Ingresses of no class or its own, until the context ends."""
    image = run(ROOT / "hack/tools/traefik/load.sh", timeout=1200).stdout.strip()
    authority = Authority("ingress")
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        apply(*_objects(image, authority))
        kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{NAME}", "--timeout=60s")
        found = _found(authority.pem)
        eventually(lambda: _answers(found), timeout=30)
        yield found
    finally:
        kubectl("delete", "ingressclass", NAME, "--ignore-not-found")
        kubectl("delete", "clusterrole,clusterrolebinding", NAMESPACE, "--ignore-not-found")
        kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


def _answers(ingress: Ingress) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"http://{ingress.address}:{ingress.http}/ping", trust_env=False)
        return answer.status_code == 200
    return False


def _found(authority: str) -> Ingress:
    service, pods = get("service", NAME, "-n", NAMESPACE), get("pods", "-n", NAMESPACE)
    ports = {port["name"]: port["nodePort"] for port in service["spec"]["ports"]}
    return Ingress(pods["items"][0]["status"]["hostIP"], ports["http"], ports["https"], authority)


def _objects(image: str, authority: Authority) -> list[Json]:
    pair = authority.issue(f"*.{DOMAIN}", dns=(f"*.{DOMAIN}",))
    here: Json = {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}
    everywhere: Json = {"name": NAMESPACE, "labels": _LABELS}
    account: Json = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    role: Json = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE}
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "traefik.yaml": _FILE}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {"apiVersion": "v1", "kind": "Secret", "metadata": here, "stringData": files},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": everywhere,
            "rules": [
                _may("", "services", "secrets", "nodes"),
                _may("discovery.k8s.io", "endpointslices"),
                _may("networking.k8s.io", "ingresses", "ingressclasses"),
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": everywhere,
            "roleRef": role,
            "subjects": [account],
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": NAME, "labels": _LABELS},
            "spec": {"controller": "traefik.io/ingress-controller"},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": here,
            "spec": {
                "type": "NodePort",
                "selector": _LABELS,
                "ports": [{"name": name, "port": port} for name, port in PORTS.items()],
            },
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": here, "spec": _deployment(image)},
    ]


def _may(group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list", "watch"]}


def _deployment(image: str) -> Json:
    container: Json = {
        "name": NAME,
        "image": image,
        "args": list(_ARGUMENTS),
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "readinessProbe": {"httpGet": {"path": "/ping", "port": "http"}, "periodSeconds": 1},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    return {
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "serviceAccountName": NAME,
                "containers": [container],
                "volumes": [{"name": "tls", "secret": {"secretName": NAME}}],
            },
        },
    }
