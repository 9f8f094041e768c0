"""What the policies of sandboxes let through, as an independent reader of NetworkPolicies sees it: a table of
who, where and in which mode, and allow lists that hypothesis makes up.
"""

import ipaddress
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.judges import BUILD_SECONDS
from tests.support.network_judge import Judge, Peer, Traffic, judging
from tests.support.network_policies import (
    FAR_SANDBOX,
    FAR_UID,
    GATEWAY,
    INTERNET,
    INTERNET_V6,
    NAMES,
    NEIGHBOUR,
    NODE,
    OPERATOR,
    OTHER_UID,
    SANDBOX,
    component,
    installation,
    pod,
    policy,
)

Json = dict[str, Any]

pytestmark = pytest.mark.timeout(BUILD_SECONDS)

# The other sandboxes have policies too: traffic between two has to pass both.
OTHERS = [
    policy({"egress": "Internet"}, uid=OTHER_UID, name="neighbour"),
    policy({"egress": "Internet"}, uid=FAR_UID, name="far", namespace="elsewhere"),
]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with judging() as found:
        yield found


class Entry(NamedTuple):
    source: Peer
    port: int
    passes: bool
    protocol: str = "TCP"


ENTRIES = {
    "the gateway reaches the control port": Entry(GATEWAY, 3000, True),
    "the gateway reaches what a user's program listens on": Entry(GATEWAY, 5173, True),
    "the gateway reaches the first and the last port of previews": Entry(GATEWAY, 1024, True),
    "the gateway reaches the very last port": Entry(GATEWAY, 65535, True),
    "the gateway has nothing to say by UDP": Entry(GATEWAY, 5173, False, "UDP"),
    "the operator reaches the control port": Entry(OPERATOR, 3000, True),
    "the operator reaches no port of a user's program": Entry(OPERATOR, 5173, False),
    "another sandbox of the namespace does not reach the control port": Entry(NEIGHBOUR, 3000, False),
    "another sandbox of the namespace reaches no port": Entry(NEIGHBOUR, 5173, False),
    "a sandbox of another namespace reaches no port": Entry(FAR_SANDBOX, 5173, False),
    "a pod of the namespace reaches no port": Entry(pod("10.244.0.30", "team", app="web"), 5173, False),
    "a pod of another namespace reaches no port": Entry(pod("10.244.0.31", "shop", app="web"), 3000, False),
    "a pod that only calls itself the gateway reaches no port": Entry(
        component("10.244.0.32", "gateway", namespace="team"), 3000, False
    ),
    "another pod of the system namespace reaches no port": Entry(
        component("10.244.0.33", "database"), 3000, False
    ),
    "somebody else's gateway in the system namespace reaches no port": Entry(
        pod(
            "10.244.0.34",
            "sandpod-system",
            app_kubernetes_io__name="istio",
            app_kubernetes_io__component="gateway",
        ),
        3000,
        False,
    ),
    "the cluster's DNS does not come by itself": Entry(NAMES, 3000, False),
    "another node does not reach the control port": Entry(NODE, 3000, False),
    "the Internet does not reach it": Entry(INTERNET, 3000, False),
    "nor by IPv6": Entry(INTERNET_V6, 3000, False),
}


@pytest.mark.parametrize("sentence", ENTRIES)
@pytest.mark.parametrize("egress", ["None", "Internet", "Restricted"])
def test_who_may_reach_a_sandbox(judge: Judge, sentence: str, egress: str) -> None:
    source, port, passes, protocol = ENTRIES[sentence]
    traffic = Traffic(source=source, destination=SANDBOX, port=port, protocol=protocol)

    assert judge.passes([policy({"egress": egress}), *OTHERS], [traffic]) == [passes]


ALLOW = [
    {"cidr": "203.0.113.64/26", "ports": [{"port": 443}, {"port": 8000, "endPort": 8010}]},
    {"cidr": "10.20.0.0/16", "ports": [{"port": 5432}]},
    {"cidr": "198.51.100.7/32"},
    {"cidr": "2001:db8:1::/48", "ports": [{"port": 53, "protocol": "UDP"}]},
]
NOWHERE, INTERNET_ONLY, ALLOWED_ONLY, EVERYWHERE = "", "Internet", "Restricted", "None Internet Restricted"


class Exit(NamedTuple):
    destination: Peer
    port: int
    modes: str
    protocol: str = "TCP"


EXITS = {
    "the Internet": Exit(INTERNET_V6, 443, INTERNET_ONLY),
    "the Internet by UDP": Exit(Peer(ip="8.8.8.8"), 443, INTERNET_ONLY, "UDP"),
    "another resolver than the cluster's": Exit(Peer(ip="8.8.8.8"), 53, INTERNET_ONLY, "UDP"),
    "IPv4 behind NAT64": Exit(Peer(ip="64:ff9b::cb00:7150"), 443, INTERNET_ONLY),
    "the names of the cluster by UDP": Exit(NAMES, 53, EVERYWHERE, "UDP"),
    "the names of the cluster by TCP": Exit(NAMES, 53, EVERYWHERE),
    "another port of the cluster's DNS": Exit(NAMES, 9153, NOWHERE),
    "another pod of kube-system at port 53": Exit(
        pod("10.244.0.40", "kube-system", k8s_app="other"), 53, NOWHERE, "UDP"
    ),
    "a pod that only calls itself the cluster's DNS": Exit(
        pod("10.244.0.41", "team", k8s_app="kube-dns"), 53, NOWHERE, "UDP"
    ),
    "another sandbox of the namespace": Exit(NEIGHBOUR, 8080, NOWHERE),
    "another sandbox's control port": Exit(NEIGHBOUR, 3000, NOWHERE),
    "a sandbox of another namespace": Exit(FAR_SANDBOX, 8080, NOWHERE),
    "a pod of the namespace": Exit(pod("10.244.0.30", "team", app="web"), 80, NOWHERE),
    "a pod of another namespace": Exit(pod("10.244.0.31", "shop", app="web"), 80, NOWHERE),
    "the gateway": Exit(GATEWAY, 8443, NOWHERE),
    "the operator": Exit(OPERATOR, 9090, NOWHERE),
    "the API server's Service": Exit(Peer(ip="10.96.0.1"), 443, NOWHERE),
    "a node": Exit(NODE, 10250, NOWHERE),
    "a node with a carrier's address": Exit(Peer(ip="100.64.3.3"), 10250, NOWHERE),
    "a pod by IPv6": Exit(Peer(ip="fd00:10:244::7"), 80, NOWHERE),
    "the metadata address": Exit(Peer(ip="169.254.169.254"), 80, NOWHERE),
    "the metadata address of another cloud": Exit(Peer(ip="168.63.129.16"), 80, NOWHERE),
    "the metadata address by IPv6": Exit(Peer(ip="fd00:ec2::254"), 80, NOWHERE),
    "the metadata address behind NAT64": Exit(Peer(ip="64:ff9b::a9fe:a9fe"), 80, NOWHERE),
    "a node's own DNS cache, where none is configured": Exit(Peer(ip="169.254.20.10"), 53, NOWHERE, "UDP"),
    "a link-local neighbour": Exit(Peer(ip="fe80::1"), 80, NOWHERE),
    "an allowed port of an allowed range": Exit(INTERNET, 443, "Internet Restricted"),
    "another port of an allowed range": Exit(INTERNET, 80, INTERNET_ONLY),
    "an allowed port by another protocol": Exit(INTERNET, 443, INTERNET_ONLY, "UDP"),
    "the first port of an allowed range of ports": Exit(INTERNET, 8000, "Internet Restricted"),
    "the last port of an allowed range of ports": Exit(INTERNET, 8010, "Internet Restricted"),
    "the port after an allowed range of ports": Exit(INTERNET, 8011, INTERNET_ONLY),
    "the port before an allowed range of ports": Exit(INTERNET, 7999, INTERNET_ONLY),
    "the first address of an allowed range": Exit(Peer(ip="203.0.113.64"), 443, "Internet Restricted"),
    "the last address of an allowed range": Exit(Peer(ip="203.0.113.127"), 443, "Internet Restricted"),
    "the address before an allowed range": Exit(Peer(ip="203.0.113.63"), 443, INTERNET_ONLY),
    "the address after an allowed range": Exit(Peer(ip="203.0.113.128"), 443, INTERNET_ONLY),
    "an allowed range inside the cluster": Exit(Peer(ip="10.20.1.2"), 5432, ALLOWED_ONLY),
    "another port of an allowed range inside the cluster": Exit(Peer(ip="10.20.1.2"), 5433, NOWHERE),
    "the neighbour of an allowed range inside the cluster": Exit(Peer(ip="10.21.0.0"), 5432, NOWHERE),
    "any port of an address that is allowed as a whole": Exit(
        Peer(ip="198.51.100.7"), 9999, "Internet Restricted", "SCTP"
    ),
    "the address beside it": Exit(Peer(ip="198.51.100.8"), 9999, INTERNET_ONLY),
    "an allowed range by IPv6": Exit(Peer(ip="2001:db8:1::53"), 53, "Internet Restricted", "UDP"),
    "its neighbour by IPv6": Exit(Peer(ip="2001:db8:2::53"), 53, INTERNET_ONLY, "UDP"),
}


def network(egress: str) -> Json:
    return {"egress": egress, **({"allow": ALLOW} if egress == "Restricted" else {})}


@pytest.mark.parametrize("sentence", EXITS)
@pytest.mark.parametrize("egress", ["None", "Internet", "Restricted"])
def test_where_a_sandbox_may_connect_to(judge: Judge, sentence: str, egress: str) -> None:
    destination, port, modes, protocol = EXITS[sentence]
    traffic = Traffic(source=SANDBOX, destination=destination, port=port, protocol=protocol)

    assert judge.passes([policy(network(egress)), *OTHERS], [traffic]) == [egress in modes.split()]


def test_a_sandbox_that_says_nothing_has_the_internet(judge: Judge) -> None:
    traffic = [Traffic(source=SANDBOX, destination=each, port=443) for each in (INTERNET, NODE)]

    assert judge.passes([policy()], traffic) == [True, False]


def test_the_metadata_address_is_open_when_it_is_allowed_by_name(judge: Judge) -> None:
    own = policy({"egress": "Restricted", "allow": [{"cidr": "169.254.169.254/32", "ports": [{"port": 80}]}]})
    to = Peer(ip="169.254.169.254")
    traffic = [Traffic(source=SANDBOX, destination=to, port=port) for port in (80, 81)]

    assert judge.passes([own], traffic) == [True, False]


@pytest.mark.parametrize("egress", ["None", "Internet", "Restricted"])
def test_a_nodes_own_dns_cache_answers_where_the_chart_names_it(judge: Judge, egress: str) -> None:
    within = installation(dns={"nodeLocal": "169.254.20.10"})
    cache = Peer(ip="169.254.20.10")
    traffic = [
        Traffic(source=SANDBOX, destination=cache, port=53, protocol="UDP"),
        Traffic(source=SANDBOX, destination=cache, port=8080),
        Traffic(source=SANDBOX, destination=Peer(ip="169.254.20.11"), port=53, protocol="UDP"),
    ]

    assert judge.passes([policy({"egress": egress}, within=within)], traffic) == [True, False, False]


def test_another_distributions_dns_can_be_named(judge: Judge) -> None:
    dns = {"namespace": "openshift-dns", "podLabels": {"dns": "default"}, "ports": [5353]}
    there = pod("10.128.0.5", "openshift-dns", dns="default")
    traffic = [
        Traffic(source=SANDBOX, destination=there, port=5353, protocol="UDP"),
        Traffic(source=SANDBOX, destination=there, port=53, protocol="UDP"),
        Traffic(source=SANDBOX, destination=NAMES, port=53, protocol="UDP"),
    ]
    own = policy({"egress": "None"}, within=installation(dns=dns))

    assert judge.passes([own], traffic) == [True, False, False]


def test_the_policy_of_a_pool_holds_for_its_waiting_pods_and_not_for_claimed_ones(judge: Judge) -> None:
    # Once the label of a claimed pod is its sandbox's, only the sandbox's policy counts.
    pools, own = policy({"egress": "None"}, uid=OTHER_UID), policy({"egress": "Internet"})
    traffic = [Traffic(source=each, destination=INTERNET, port=443) for each in (NEIGHBOUR, SANDBOX)]

    assert judge.passes([pools, own], traffic) == [False, True]


# Few bits, so that ranges meet: the same few networks over and over, and addresses at their edges.
PLACES = st.sampled_from(["10.0.0.0", "10.0.1.0", "172.16.0.0", "203.0.113.0", "2001:db8::", "fd00::"])
PORTS = st.integers(1, 12)
PROTOCOLS = st.sampled_from(["TCP", "UDP", "SCTP"])


@st.composite
def ranges(draw: st.DrawFn) -> str:
    place = draw(PLACES)
    bits = draw(st.sampled_from([0, 7, 8, 9, 24, 30, 31, 32] if "." in place else [0, 7, 32, 126, 128]))
    return str(ipaddress.ip_network(f"{place}/{bits}", strict=False))


@st.composite
def addresses(draw: st.DrawFn) -> str:
    found = ipaddress.ip_network(draw(ranges()))
    edges = {int(found.network_address) + step for step in (-1, 0, 1)}
    edges |= {int(found.broadcast_address) + step for step in (-1, 0, 1)}
    kind = type(found.network_address)
    return str(kind(draw(st.sampled_from(sorted(edges))) % 2**found.max_prefixlen))


@st.composite
def ports(draw: st.DrawFn) -> Json:
    first = draw(PORTS)
    last = draw(st.none() | st.integers(first, 12))
    return {"port": first, "protocol": draw(PROTOCOLS), **({} if last is None else {"endPort": last})}


TARGETS = st.fixed_dictionaries({"cidr": ranges(), "ports": st.lists(ports(), max_size=3)})
PROBES = st.lists(st.tuples(addresses(), PORTS, PROTOCOLS), min_size=1, max_size=10)
LASTING = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def within(address: str, cidr: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(cidr)


@LASTING
@given(allow=st.lists(TARGETS, max_size=5), probes=PROBES)
def test_restricted_opens_what_is_allowed_and_nothing_else(
    judge: Judge, allow: list[Json], probes: list[tuple[str, int, str]]
) -> None:
    def allowed(address: str, port: int, protocol: str) -> bool:
        return any(
            within(address, target["cidr"])
            and (
                not target["ports"]
                or any(
                    each["protocol"] == protocol and each["port"] <= port <= each.get("endPort", each["port"])
                    for each in target["ports"]
                )
            )
            for target in allow
        )

    own = policy({"egress": "Restricted", "allow": allow})
    traffic = [
        Traffic(source=SANDBOX, destination=Peer(ip=address), port=port, protocol=protocol)
        for address, port, protocol in probes
    ]

    assert judge.passes([own], traffic) == [allowed(*probe) for probe in probes]


@LASTING
@given(cluster=st.lists(ranges(), max_size=5), probes=st.lists(addresses(), min_size=1, max_size=10))
def test_the_internet_is_whatever_is_not_the_clusters(
    judge: Judge, cluster: list[str], probes: list[str]
) -> None:
    chart = installation(clusterRanges=cluster)
    own = policy({"egress": "Internet"}, within=chart)
    traffic = [Traffic(source=SANDBOX, destination=Peer(ip=address), port=443) for address in probes]

    assert judge.passes([own], traffic) == [
        not any(within(address, cidr) for cidr in cluster) for address in probes
    ]
