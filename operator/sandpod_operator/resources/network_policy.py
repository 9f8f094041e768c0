"""The NetworkPolicy of a sandbox, or of a pool's waiting pods: who may reach them and where they may connect
to. Pure. docs/networks.md says the same for people.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from sandpod_crds.models.network import AllowedTarget, Network, NetworkPort
from sandpod_crds.names import (
    ANNOTATION_HASH,
    COMPONENT_GATEWAY,
    COMPONENT_OPERATOR,
    CONTROL_PORT,
    LABEL_COMPONENT,
    LABEL_NETWORK,
    LABEL_VERSION,
)

from ..objects import Json, controller, digest, section
from ..settings import Dns, Installation, Range

# Every namespace carries its own name here; the API server sees to it.
NAMESPACE_NAME = "kubernetes.io/metadata.name"
# Where clouds tell a machine its secrets, in whatever network it stands: link-local, and the addresses of
# Azure, Oracle, AWS and Google that are not.
METADATA = [
    ip_network(each)
    for each in (
        "169.254.0.0/16",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fe80::/10",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
]
# By these addresses a network with NAT64 reaches the whole of IPv4, also what is closed there.
NAT64 = IPv6Network("64:ff9b::/96")
EVERYTHING = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


def policy_name(sandbox_name: str) -> str:
    return f"{sandbox_name}-sandbox"


def pool_policy_name(pool_name: str) -> str:
    # Another ending: a pool and a sandbox may have the same name.
    return f"{pool_name}-pool"


def build_network_policy(
    network: Network | None,
    *,
    name: str,
    namespace: str,
    selects_uid: str,
    labels: Mapping[str, str],
    installation: Installation,
) -> Json:
    """`selects_uid` is the sandbox's or the pool's, that its pods carry in LABEL_NETWORK.

    It has no owner: with one, the garbage collector would take it away at once, from around a pod that
    has all its grace period before it. The operator takes it away when nobody is behind it any more.
    """
    # No field is left to the API server's defaults, and nothing is empty: what it stores is what stands here.
    policy: Json = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels), "ownerReferences": []},
        "spec": {
            "podSelector": {"matchLabels": {LABEL_NETWORK: selects_uid}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": list(_ingress(installation)),
            "egress": list(_egress(network or Network(), installation)),
        },
    }
    policy["metadata"]["annotations"] = {ANNOTATION_HASH: policy_hash(policy)}
    return policy


def policy_hash(policy: Json) -> str:
    """Of all that we say in it, but for the version: an operator's upgrade rewrites no policy."""
    metadata = policy["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != LABEL_VERSION}
    return digest([labels, policy["spec"]])


def is_as_wanted(found: Json, wanted: Json) -> bool:
    """Whether the policy that is there says what ours says, whoever wrote it last."""
    theirs, ours = section(found, "metadata"), wanted["metadata"]
    labels = {key: value for key, value in ours["labels"].items() if key != LABEL_VERSION}
    return (
        # By these, who has made it finds it again; the hash is a note that stays when somebody changes what
        # it is of.
        ours["annotations"].items() <= section(theirs, "annotations").items()
        and labels.items() <= section(theirs, "labels").items()
        and not controller(theirs)
        and found.get("spec") == wanted["spec"]
    )


def is_a_wall(found: Json) -> bool:
    """One of ours, whatever has become of its labels."""
    metadata = found["metadata"]
    ours = network_behind(found) is not None and ANNOTATION_HASH in section(metadata, "annotations")
    return ours and not controller(metadata)


def network_behind(policy: Json) -> str | None:
    """What the pods behind it carry in LABEL_NETWORK."""
    return section(section(section(policy, "spec"), "podSelector"), "matchLabels").get(LABEL_NETWORK)


def _ingress(installation: Installation) -> Iterator[Json]:
    # The gateway: the control port, and whatever port a user's program listens on. Not as a range of ports,
    # of which some networks understand the first only.
    yield {"from": [_component(COMPONENT_GATEWAY, installation)], "ports": [{"protocol": "TCP"}]}
    yield {"from": [_component(COMPONENT_OPERATOR, installation)], "ports": [_port(CONTROL_PORT, "TCP")]}


def _component(component: str, installation: Installation) -> Json:
    settings = installation.settings
    labels = {**settings.release_labels, LABEL_COMPONENT: component}
    return _pods(settings.system_namespace, labels)


def _egress(network: Network, installation: Installation) -> Iterator[Json]:
    settings = installation.settings.network
    yield from _names(settings.dns)
    if network.egress == "Internet":
        blocks = _internet(tuple(settings.cluster_ranges))
        if blocks:
            yield {"to": [{"ipBlock": {"cidr": cidr, "except": list(holes)}} for cidr, holes in blocks]}
    elif network.egress == "Restricted":
        yield from (_allowed(target) for target in network.allow)


def closed_ranges(cluster_ranges: Iterable[Range]) -> Iterator[Range]:
    """What is not the Internet, each address once, in order."""
    ranges = [*cluster_ranges, *METADATA]
    v4 = list(collapse_addresses(each for each in ranges if isinstance(each, IPv4Network)))
    v6 = [each for each in ranges if isinstance(each, IPv6Network)]
    yield from v4
    yield from collapse_addresses([*v6, *map(_by_nat64, v4)])


# The same for every sandbox, and much of the work of a policy.
@lru_cache(maxsize=8)
def _internet(cluster_ranges: tuple[Range, ...]) -> list[tuple[str, list[str]]]:
    """Of each family, everything and the holes in it."""
    closed = list(closed_ranges(cluster_ranges))
    return [
        (str(family), [str(hole) for hole in closed if hole.version == family.version])
        for family in EVERYTHING
        # One that is closed as a whole has no rule: an exception must be smaller than its range.
        if family not in closed
    ]


def _by_nat64(network: IPv4Network) -> IPv6Network:
    address = int(NAT64.network_address) + int(network.network_address)
    return IPv6Network((address, NAT64.prefixlen + network.prefixlen))


def _names(dns: Dns) -> Iterator[Json]:
    ports = [_port(port, protocol) for port in dns.ports for protocol in ("UDP", "TCP")]
    yield {"to": [_pods(dns.namespace, dns.pod_labels)], "ports": ports}
    if dns.node_local is not None:
        cache = ip_network(dns.node_local)
        yield {"to": [{"ipBlock": {"cidr": str(cache)}}], "ports": [_port(53, "UDP"), _port(53, "TCP")]}


def _allowed(target: AllowedTarget) -> Json:
    rule: Json = {"to": [{"ipBlock": {"cidr": target.cidr}}]}
    if target.ports:
        rule["ports"] = [_range(port) for port in target.ports]
    return rule


def _pods(namespace: str, labels: Mapping[str, str]) -> Json:
    return {
        "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespace}},
        "podSelector": {"matchLabels": dict(labels)},
    }


def _range(port: NetworkPort) -> Json:
    rule = _port(port.port, port.protocol)
    return rule if port.end_port is None else {**rule, "endPort": port.end_port}


def _port(port: int, protocol: str) -> Json:
    return {"port": port, "protocol": protocol}
