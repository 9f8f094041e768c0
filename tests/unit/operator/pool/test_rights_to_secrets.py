"""What the chart lets the operator read for warm pods: by default nothing, and never more than get."""

import itertools
import json
from typing import NamedTuple

import pytest

from tests.support.monitoring import Json, of_kind

SYSTEM = "system"
OPERATOR = f"ServiceAccount {SYSTEM}/sandpod-operator"
EVERYWHERE = "*"
# Of any name, say.
EVERYTHING = "*"


class Right(NamedTuple):
    who: str
    namespace: str
    verb: str
    group: str
    resource: str
    name: str


def rights(*settings: str) -> set[Right]:
    """All that the chart's bindings give to anybody."""
    roles: dict[tuple[str, str, str], Json] = {
        (kind, _namespace(role), role["metadata"]["name"]): role
        for kind in ("Role", "ClusterRole")
        for role in of_kind(kind, *settings)
    }
    found = set[Right]()
    for binding in [*of_kind("RoleBinding", *settings), *of_kind("ClusterRoleBinding", *settings)]:
        where, named = _namespace(binding), binding["roleRef"]
        home = where if named["kind"] == "Role" else EVERYWHERE
        # Those that are not there are Kubernetes' own.
        role = roles.get((named["kind"], home, named["name"]), {})
        for subject, rule in itertools.product(binding["subjects"], role.get("rules", [])):
            who = f"{subject['kind']} {subject['namespace']}/{subject['name']}"
            parts = ("verbs", "apiGroups", "resources", "resourceNames")
            for each in itertools.product(*(rule.get(part, [EVERYTHING]) for part in parts)):
                found.add(Right(who, where, *each))
    return found


def _namespace(obj: Json) -> str:
    return obj["metadata"].get("namespace", EVERYWHERE)


def reads(namespace: str) -> set[Right]:
    return {
        Right(OPERATOR, namespace, "get", "", resource, EVERYTHING) for resource in ("secrets", "configmaps")
    }


def about_secrets(given: set[Right]) -> set[Right]:
    return {right for right in given if {right.group, right.resource} & {EVERYTHING, "secrets", "configmaps"}}


def test_by_default_the_operator_reads_nobodys_secrets() -> None:
    own = {
        Right(OPERATOR, SYSTEM, verb, "", "secrets", f"sandpod-{name}")
        for verb in ("get", "update", "patch")
        for name in ("key", "gateway-tls")
    }

    of_the_operator = {right for right in about_secrets(rights()) if right.who == OPERATOR}
    # Kubernetes cannot restrict a create to a name.
    assert of_the_operator == {*own, Right(OPERATOR, SYSTEM, "create", "", "secrets", EVERYTHING)}


@pytest.mark.parametrize(
    ("namespaces", "added"),
    [
        ("team-a", reads("team-a")),
        ("team-a,team-b", reads("team-a") | reads("team-b")),
        # Where the release is, beside the operator's other role.
        (SYSTEM, reads(SYSTEM)),
        ("*", reads(EVERYWHERE)),
        ("team-a,*", reads("team-a") | reads(EVERYWHERE)),
    ],
)
def test_it_may_get_them_where_the_platform_team_says_so_and_nobody_may_do_more(
    namespaces: str, added: set[Right]
) -> None:
    before, after = rights(), rights(f"pools.readSecrets={{{namespaces}}}")

    assert after - before == added
    assert before <= after


@pytest.mark.parametrize("kind", ["Role", "RoleBinding"])
def test_a_namespace_that_is_named_twice_gets_one_of_each(kind: str) -> None:
    made = of_kind(kind, "pools.readSecrets={team-a,team-b,team-a}")

    assert sorted(_namespace(each) for each in made if each["metadata"]["name"].endswith("-pools")) == [
        "team-a",
        "team-b",
    ]


@pytest.mark.parametrize("namespaces", [None, "team-a", "*"])
def test_the_operator_is_told_where_it_may(namespaces: str | None) -> None:
    values = [] if namespaces is None else [f"pools.readSecrets={{{namespaces}}}"]
    deployments = of_kind("Deployment", *values)
    operator = next(each for each in deployments if each["metadata"]["name"] == "sandpod-operator")
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    settings = next(each["value"] for each in container["env"] if each["name"] == "SANDPOD_SETTINGS")

    assert json.loads(settings)["pools"]["readSecrets"] == ([namespaces] if namespaces else [])
