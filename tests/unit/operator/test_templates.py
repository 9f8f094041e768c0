"""A sandbox and its template as one spec."""

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds.models import SandboxSpec
from sandpod_operator.objects import Json
from sandpod_operator.resources.merge import combine, merge
from sandpod_operator.templates import check_merged, frozen, live_part, merge_spec

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["", "x", "y"])
AMOUNTS = st.sampled_from([1, "2", "500m", "3"])
BOOLEANS = st.booleans()


def objects(required: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(required or {}, optional=optional)


def lists_by(key: str, items: st.SearchStrategy[Json]) -> st.SearchStrategy[list[Json]]:
    return st.lists(items, unique_by=lambda item: item[key], max_size=3)


VARIABLES = lists_by(
    "name",
    objects({"name": NAMES, "value": TEXTS})
    | objects({"name": NAMES, "valueFrom": st.just({"secretKeyRef": {"name": "s", "key": "k"}})}),
)
PROCESSES = lists_by(
    "name",
    objects(
        {"name": NAMES, "command": st.sampled_from(["one", "two"])},
        cwd=st.sampled_from(["/", "/tmp"]),
        env=lists_by("name", objects({"name": NAMES}, value=TEXTS)),
        port=st.sampled_from([8080, 8081]),
    ),
)
PORTS = lists_by("port", objects({"port": st.sampled_from([8080, 8081, 8082])}, name=NAMES))
# In a podTemplate an empty list says nothing, as in a patch of a pod.
CONTAINERS = lists_by(
    "name",
    objects(
        {"name": NAMES}, image=TEXTS, args=st.none() | st.lists(TEXTS, max_size=2), env=VARIABLES.filter(bool)
    )
    | objects({"name": NAMES, "$patch": st.just("delete")}),
).filter(bool)
AFFINITIES: st.SearchStrategy[Any] = st.none() | objects(
    nodeAffinity=st.dictionaries(NAMES, st.none() | TEXTS), podAffinity=st.none() | TEXTS
)
POD_SPECS = objects(
    hostname=st.none() | TEXTS,
    containers=CONTAINERS,
    affinity=AFFINITIES | objects({"$patch": st.just("replace")}, nodeAffinity=objects(x=TEXTS)),
)
SHARED: dict[str, Any] = {
    "image": TEXTS,
    "env": VARIABLES,
    "processes": PROCESSES,
    "ports": PORTS,
    "setup": st.lists(TEXTS, max_size=2),
    "nodeSelector": st.dictionaries(NAMES, TEXTS, max_size=2),
    "keepAlive": BOOLEANS,
    "sleepAfter": st.sampled_from(["5m", 60]),
    "isolation": st.sampled_from(["Standard", "Strict"]),
    "network": objects({"egress": st.just("Restricted")}, allow=st.lists(st.just({"cidr": "10.0.0.0/8"})))
    | objects(egress=st.sampled_from(["None", "Internet"])),
    "resources": objects(
        limits=st.dictionaries(NAMES, AMOUNTS, max_size=2),
        requests=st.dictionaries(NAMES, AMOUNTS, max_size=2),
    ),
    "podTemplate": objects(
        metadata=objects(labels=st.dictionaries(NAMES, TEXTS, max_size=2)), spec=POD_SPECS
    ),
    "lifetime": objects(maxAge=st.just("8h"), deleteAfterAsleep=st.just("1h")),
}
SIZED = objects({"size": st.sampled_from(["1Gi", "2Gi"])}, reclaim=st.sampled_from(["Delete", "Retain"]))
TEMPLATES = objects(**SHARED, workspace=SIZED)
OWN = objects(
    **SHARED,
    workspace=SIZED | objects({"claimName": NAMES}) | objects(reclaim=st.just("Retain")),
    paused=BOOLEANS,
    templateRef=st.just({"name": "t"}),
)

MAP_LISTS = {"env": "name", "processes": "name", "ports": "port", "containers": "name"}


@given(OWN)
def test_an_empty_template_changes_nothing(own: Json) -> None:
    assert merge_spec(template={}, own=own) == own


@given(TEMPLATES)
def test_an_empty_sandbox_is_its_template(template: Json) -> None:
    assert merge_spec(template=template, own={}) == template


@given(TEMPLATES, OWN)
def test_merging_a_template_twice_is_merging_it_once(template: Json, own: Json) -> None:
    once = merge_spec(template=template, own=own)

    assert merge_spec(template=template, own=once) == once


@given(TEMPLATES, OWN)
def test_neither_object_is_changed(template: Json, own: Json) -> None:
    before = copy.deepcopy((template, own))
    merge_spec(template=template, own=own)

    assert (template, own) == before


@given(TEMPLATES, OWN)
def test_what_the_sandbox_says_holds(template: Json, own: Json) -> None:
    merged = merge_spec(template=template, own=own)

    assert says(merged, own)


@given(TEMPLATES, OWN)
def test_every_field_comes_from_one_of_the_two(template: Json, own: Json) -> None:
    merged = merge_spec(template=template, own=own)

    assert merged.keys() == template.keys() | own.keys()
    # The pod's part has words for taking something away; what it does has a test of its own.
    for spec in (merged, template, own):
        spec.get("podTemplate", {}).pop("spec", None)
    assert set(places(merged)) <= set(places(template)) | set(places(own))


@given(TEMPLATES, OWN)
def test_lists_of_named_things_have_every_name_once_the_templates_first(template: Json, own: Json) -> None:
    merged = merge_spec(template=template, own=own)

    for name, key in MAP_LISTS.items():
        if name in template and own.get(name):
            inherited = [item[key] for item in template[name]]
            added = [item[key] for item in own[name] if item[key] not in inherited]
            assert [item[key] for item in merged[name]] == inherited + added


@given(TEMPLATES, OWN)
def test_two_that_are_valid_make_one_that_can_be_read(template: Json, own: Json) -> None:
    spec = SandboxSpec.model_validate(merge_spec(template=template, own=own))

    assert all(variable.value is None or variable.value_from is None for variable in spec.env)
    workspace, network = spec.workspace, spec.network
    assert workspace is None or workspace.claim_name is None or workspace.model_fields_set == {"claim_name"}
    assert network is None or not network.allow or network.egress == "Restricted"


@given(POD_SPECS, POD_SPECS, POD_SPECS)
def test_two_patches_of_a_pod_do_as_one_what_they_do_in_turn(base: Json, first: Json, second: Json) -> None:
    base = merge({}, base)

    in_turn = merge(merge(base, first), second)

    assert by_name(merge(base, combine(first, second))) == by_name(in_turn)


def says(merged: Any, own: Any, *, field: str = "") -> bool:
    """The merged value has everything that the sandbox's own has, except what it takes away from a pod."""
    if isinstance(own, dict):
        fields = cast("Json", own)
        if merged.get("$patch") == fields.get("$patch") == "delete":
            return True
        return all(name in merged and says(merged[name], each, field=name) for name, each in fields.items())
    key = MAP_LISTS.get(field)
    if isinstance(own, list) and own and key is not None:
        found = {item[key]: item for item in merged}
        return all(item[key] in found and says(found[item[key]], item) for item in cast("list[Json]", own))
    return merged == own


def places(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        fields = cast("Json", value).items()
        return [path, *(place for name, child in fields for place in places(child, f"{path}.{name}"))]
    if isinstance(value, list):
        return [path, *(place for child in cast("list[Any]", value) for place in places(child, f"{path}[]"))]
    return [path]


def by_name(spec: Json) -> Json:
    """A container that one patch takes away and the next brings back stands elsewhere in the list."""
    return {**spec, "containers": sorted(spec.get("containers") or [], key=lambda each: each["name"])}


@pytest.mark.parametrize(
    ("template", "own", "merged"),
    [
        pytest.param({"keepAlive": True}, {"keepAlive": False}, {"keepAlive": False}, id="false wins"),
        pytest.param({"setup": ["a"]}, {"setup": []}, {"setup": []}, id="an empty list wins"),
        pytest.param(
            {"ports": [{"port": 8080}]}, {"ports": []}, {"ports": []}, id="an empty list of named things wins"
        ),
        pytest.param({"env": []}, {"env": None}, {"env": []}, id="null says nothing"),
        pytest.param(
            {"paused": True, "poolRef": {"name": "p"}}, {}, {}, id="what only a sandbox has is not inherited"
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "B", "value": "2"},
                ]
            },
            id="a variable is replaced",
        ),
        pytest.param(
            {"ports": [{"port": 8080, "name": "web"}]},
            {"ports": [{"port": 8080, "access": "Private"}, {"port": 9090}]},
            {"ports": [{"port": 8080, "name": "web", "access": "Private"}, {"port": 9090}]},
            id="a port is completed",
        ),
        pytest.param(
            {
                "processes": [
                    {"name": "dev", "command": "a", "cwd": "/app", "env": [{"name": "A", "value": "1"}]}
                ]
            },
            {"processes": [{"name": "dev", "command": "b", "env": [{"name": "A"}]}]},
            {"processes": [{"name": "dev", "command": "b", "cwd": "/app", "env": [{"name": "A"}]}]},
            id="a process is completed and its variables replaced",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}},
            {"nodeSelector": {"arch": "arm64"}},
            {"nodeSelector": {"arch": "arm64"}},
            id="an atomic map is replaced",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"tolerations": [{"key": "b", "operator": "Exists"}]},
            {"tolerations": [{"key": "b", "operator": "Exists"}]},
            id="an atomic list is replaced",
        ),
        pytest.param(
            {"workspace": {"size": "1Gi", "reclaim": "Retain", "storageClassName": "fast"}},
            {"workspace": {"claimName": "mine"}},
            {"workspace": {"claimName": "mine"}},
            id="an existing claim excludes what a new one would be like",
        ),
        pytest.param(
            {"workspace": {"size": "1Gi", "reclaim": "Retain"}},
            {"workspace": {"size": "5Gi"}},
            {"workspace": {"size": "5Gi", "reclaim": "Retain"}},
            id="a larger workspace",
        ),
        pytest.param(
            {"network": {"egress": "Restricted", "allow": [{"cidr": "10.0.0.0/8"}]}},
            {"network": {"egress": "None"}},
            {"network": {"egress": "None"}},
            id="another egress excludes allow",
        ),
        pytest.param(
            {"network": {"egress": "Restricted", "allow": [{"cidr": "10.0.0.0/8"}]}},
            {"network": {"allow": [{"cidr": "192.0.2.0/24"}]}},
            {"network": {"egress": "Restricted", "allow": [{"cidr": "192.0.2.0/24"}]}},
            id="allow is replaced",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": 2, "memory": "4Gi"}, "requests": {"cpu": 1}}},
            {"resources": {"limits": {"memory": "8Gi"}}},
            {"resources": {"limits": {"cpu": 2, "memory": "8Gi"}, "requests": {"cpu": 1}}},
            id="resources merge by name",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": 2}}},
            {"resources": {"limits": {"cpu": "500m"}}},
            {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}},
            id="a limit lowers the template's request",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": 2}}},
            {"resources": {"requests": {"cpu": 4}}},
            {"resources": {"limits": {"cpu": 4}, "requests": {"cpu": 4}}},
            id="a request raises the template's limit",
        ),
        pytest.param(
            {"podTemplate": {"spec": {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}]}}},
            {"podTemplate": {"spec": {"hostAliases": [{"ip": "192.0.2.2", "hostnames": ["b"]}]}}},
            {
                "podTemplate": {
                    "spec": {
                        "hostAliases": [
                            {"ip": "192.0.2.1", "hostnames": ["a"]},
                            {"ip": "192.0.2.2", "hostnames": ["b"]},
                        ]
                    }
                }
            },
            id="parts of a pod merge as in a pod",
        ),
        pytest.param(
            {"podTemplate": {"spec": {"containers": "none"}}},
            {"podTemplate": {"spec": {"containers": [{"name": "a"}]}}},
            {"podTemplate": {"spec": {"containers": "none"}}},
            id="what cannot be merged stays for the pod to refuse",
        ),
    ],
)
def test_fields_merge_as_users_of_kubernetes_expect(template: Json, own: Json, merged: Json) -> None:
    assert merge_spec(template=template, own=own) == merged


@pytest.mark.parametrize(
    ("template", "own", "part"),
    [
        ({"isolation": "Strict"}, {"user": "root"}, None),
        ({"isolation": "Standard"}, {"user": "root"}, "user: root is possible with isolation: Strict only"),
        ({"network": {"egress": "Restricted"}}, {"network": {"allow": [{"cidr": "10.0.0.0/8"}]}}, None),
        ({}, {"network": {"allow": [{"cidr": "10.0.0.0/8"}]}}, "network.allow works with"),
        ({"workspace": {"size": "1Gi"}}, {"workspace": {"reclaim": "Retain"}}, None),
        ({}, {"workspace": {"reclaim": "Retain"}}, "workspace needs a size"),
        (
            {"ports": [{"port": 8080, "name": "web"}]},
            {"ports": [{"port": 9090, "name": "web"}]},
            "two ports have the name web",
        ),
        (
            {"ports": [{"port": 8000 + number} for number in range(32)]},
            {"ports": [{"port": 9000}]},
            "ports has 33 entries together with the template's; at most 32 are possible",
        ),
        (
            {"processes": [{"name": "dev", "command": "a", "env": [{"name": f"A{n}"} for n in range(64)]}]},
            {"processes": [{"name": "dev", "command": "a", "env": [{"name": "B"}]}]},
            "processes[].env has 65 entries",
        ),
    ],
)
def test_what_only_the_two_together_do_wrong_is_said_in_a_sentence(
    template: Json, own: Json, part: str | None
) -> None:
    said = check_merged(SandboxSpec.model_validate(merge_spec(template=template, own=own)))

    assert (said is None) if part is None else (said is not None and said.startswith(part))


def test_a_changed_template_reaches_a_running_sandbox_only_where_it_needs_a_new_pod() -> None:
    before: Json = {"image": "a", "sleepAfter": "5m", "network": {"egress": "None"}}
    after: Json = {"image": "b", "sleepAfter": "1h", "keepAlive": True}

    seen = frozen(template=after, recorded=live_part(before))

    assert seen == {"image": "b", "sleepAfter": "5m", "network": {"egress": "None"}}


def test_a_running_sandbox_still_has_its_own_way_under_a_changed_template() -> None:
    recorded = live_part({"sleepAfter": "5m", "keepAlive": True})
    seen = frozen(template={"sleepAfter": "1h"}, recorded=recorded)

    assert merge_spec(template=seen, own={"keepAlive": False}) == {"sleepAfter": "5m", "keepAlive": False}


@given(TEMPLATES)
def test_an_unchanged_template_is_seen_as_it_is(template: Json) -> None:
    assert frozen(template=template, recorded=live_part(template)) == template
