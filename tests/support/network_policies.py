"""The policies of sandboxes in a small cluster, and everybody who may want to get through them."""

from typing import Any

from sandpod_crds.models import Network
from sandpod_crds.names import child_labels
from sandpod_operator.resources.network_policy import build_network_policy, policy_name
from sandpod_operator.settings import Installation, RuntimeMount, Settings

from tests.support.network_judge import Peer

Json = dict[str, Any]


def installation(*, version: str = "0.1.0", **network: Any) -> Installation:
    """With what the chart says about the network."""
    said = {"sandboxImage": "sandbox", "runtimeImage": "runtime", "network": network}
    return Installation(
        settings=Settings.model_validate(said),
        version=version,
        key=b"k" * 32,
        runtime_mount=RuntimeMount.IMAGE_VOLUME,
    )


INSTALLATION = installation()

UID = "5a0d0001-0000-4000-8000-000000000001"
OTHER_UID = "5a0d0002-0000-4000-8000-000000000002"
FAR_UID = "5a0d0003-0000-4000-8000-000000000003"


def policy(
    network: Json | None = None,
    *,
    uid: str = UID,
    namespace: str = "team",
    name: str = "box",
    within: Installation = INSTALLATION,
) -> Json:
    return build_network_policy(
        None if network is None else Network.model_validate(network),
        name=policy_name(name),
        namespace=namespace,
        selects_uid=uid,
        labels=child_labels(sandbox_name=name, sandbox_uid=uid, version=within.version),
        installation=within,
    )


def pod(ip: str, namespace: str, **labels: str) -> Peer:
    """Labels as keyword arguments: `__` stands for a slash, `_` for a hyphen."""
    return Peer(
        ip=ip,
        namespace=namespace,
        labels={key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()},
    )


def sandbox_pod(ip: str, namespace: str, uid: str) -> Peer:
    return Peer(ip=ip, namespace=namespace, labels={"sandpod.dev/network": uid})


def component(ip: str, name: str, *, namespace: str = "sandpod-system") -> Peer:
    labels = {"app.kubernetes.io/name": "sandpod", "app.kubernetes.io/component": name}
    return Peer(ip=ip, namespace=namespace, labels=labels)


SANDBOX = sandbox_pod("10.244.0.7", "team", UID)
NEIGHBOUR = sandbox_pod("10.244.0.8", "team", OTHER_UID)
FAR_SANDBOX = sandbox_pod("10.244.1.9", "elsewhere", FAR_UID)
GATEWAY = component("10.244.0.2", "gateway")
OPERATOR = component("10.244.0.3", "operator")
NAMES = pod("10.244.0.4", "kube-system", k8s_app="kube-dns")
NODE = Peer(ip="192.168.7.20")
INTERNET = Peer(ip="203.0.113.80")
INTERNET_V6 = Peer(ip="2600:1f18::80")
