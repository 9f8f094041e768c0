"""The NetworkPolicy as an object: what the API server takes, when it is written again, and when not."""

import copy
from collections.abc import Callable
from ipaddress import IPv4Network, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.resources.network_policy import closed_ranges, is_as_wanted

from tests.support.network_policies import UID, installation, policy

Json = dict[str, Any]

RESTRICTED = {
    "egress": "Restricted",
    "allow": [{"cidr": "203.0.113.0/24", "ports": [{"port": 443}, {"port": 8000, "endPort": 8010}]}],
}
MODES: list[Json | None] = [None, {"egress": "None"}, {"egress": "Internet"}, RESTRICTED]


def test_it_selects_pods_by_the_uid_that_they_carry() -> None:
    assert policy()["spec"]["podSelector"] == {"matchLabels": {"sandpod.dev/network": UID}}


def test_its_labels_say_whose_it_is_and_it_has_no_owner_with_whom_it_would_go_before_the_pod() -> None:
    metadata = policy()["metadata"]

    assert metadata["name"] == "box-sandbox"
    assert metadata["ownerReferences"] == []
    assert metadata["labels"]["sandpod.dev/sandbox-uid"] == UID


@pytest.mark.parametrize("network", MODES)
def test_nothing_is_left_for_the_api_server_to_fill_in_or_leave_out(network: Json | None) -> None:
    spec = policy(network)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    for rule in (*spec["ingress"], *spec["egress"]):
        assert all(rule.values())
        assert all(port["protocol"] for port in rule.get("ports", []))


def test_without_a_network_it_is_the_one_of_internet() -> None:
    assert policy()["spec"] == policy({"egress": "Internet"})["spec"]


@pytest.mark.parametrize("egress", ["None", "Internet"])
def test_a_list_that_a_template_has_left_over_opens_nothing_in_another_mode(egress: str) -> None:
    assert policy({**RESTRICTED, "egress": egress})["spec"] == policy({"egress": egress})["spec"]


def test_every_exception_lies_within_its_range_and_is_named_once() -> None:
    blocks = [
        each["ipBlock"] for rule in policy()["spec"]["egress"] for each in rule["to"] if "ipBlock" in each
    ]
    assert [block["cidr"] for block in blocks] == ["0.0.0.0/0", "::/0"]
    for block in blocks:
        holes = [ip_network(each) for each in block["except"]]
        assert all(hole != ip_network(block["cidr"]) for hole in holes)
        assert not any(one.overlaps(other) for one in holes for other in holes if one is not other)


def test_a_family_that_is_the_clusters_as_a_whole_has_no_rule() -> None:
    within = installation(clusterRanges=["0.0.0.0/1", "128.0.0.0/1"])
    egress = policy(within=within)["spec"]["egress"]
    assert [each["ipBlock"]["cidr"] for each in egress[-1]["to"]] == ["::/0"]
    # Nor is all of IPv4 open by way of NAT64.
    assert "64:ff9b::/96" in egress[-1]["to"][0]["ipBlock"]["except"]


def test_a_cluster_that_takes_up_all_addresses_leaves_names_only() -> None:
    egress = policy(within=installation(clusterRanges=["0.0.0.0/0", "::/0"]))["spec"]["egress"]
    assert len(egress) == 1


def network_of(place: tuple[int, int]) -> IPv4Network:
    return IPv4Network(place, strict=False)


RANGES = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 32)).map(network_of)


@given(st.lists(RANGES, max_size=8))
def test_closed_ranges_do_not_depend_on_the_order_in_which_the_chart_names_them(
    given: list[IPv4Network],
) -> None:
    found = list(closed_ranges(given))
    assert found == list(closed_ranges(reversed(given)))
    assert all(
        any(isinstance(wide, IPv4Network) and each.subnet_of(wide) for wide in found) for each in given
    )


# What somebody does to a policy, and it is written again.
DAMAGE: dict[str, Callable[[Json], Any]] = {
    "another rule lets everybody in": lambda found: found["spec"]["ingress"].append({}),
    "another rule lets it go everywhere": lambda found: found["spec"]["egress"].append({}),
    "an exception is gone": lambda found: found["spec"]["egress"][-1]["to"][0]["ipBlock"]["except"].pop(),
    "it selects other pods": lambda found: found["spec"].update(podSelector={}),
    "it is for one direction only": lambda found: found["spec"].update(policyTypes=["Ingress"]),
    "its rules are gone": lambda found: found["spec"].pop("ingress"),
    "its hash is gone": lambda found: found["metadata"].pop("annotations"),
    "its labels are gone": lambda found: found["metadata"].pop("labels"),
    "a label is another": lambda found: found["metadata"]["labels"].update({"sandpod.dev/sandbox-uid": "x"}),
    "it goes with somebody": lambda found: found["metadata"].update(ownerReferences=[{"controller": True}]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_somebody_has_changed_is_written_again(damage: str) -> None:
    wanted = policy()
    found = copy.deepcopy(wanted)
    DAMAGE[damage](found)
    assert not is_as_wanted(found, wanted)


def test_a_changed_network_is_written() -> None:
    assert not is_as_wanted(policy({"egress": "None"}), policy({"egress": "Internet"}))
    assert not is_as_wanted(policy(within=installation(clusterRanges=["10.0.0.0/8"])), policy())


def test_what_others_add_beside_it_is_theirs() -> None:
    found = policy()
    found["metadata"]["annotations"]["example.com/reviewed"] = "yes"
    found["metadata"]["labels"]["team"] = "red"
    found["metadata"]["ownerReferences"].append({"kind": "Team", "uid": "another"})
    found["metadata"] |= {"uid": "1", "resourceVersion": "7", "managedFields": []}
    assert is_as_wanted(found, policy())


def test_an_upgrade_of_the_operator_writes_no_policy_again() -> None:
    assert is_as_wanted(policy(), policy(within=installation(version="0.2.0")))
