"""The CRDs: structural, bounded, described, and the same as those that are committed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sandpod_crds import crd, generate
from sandpod_crds.errors import NotStructural
from sandpod_crds.schema import KEYWORDS, structural

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
CRDS = crd.definitions()
FILES = generate.files()


def schema(plural: str) -> Json:
    return CRDS[plural]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in node:
            yield from nodes(node[name], f"{path}[]")


ALL = [(path, node) for plural in CRDS for path, node in nodes(schema(plural), plural)]
OURS = [(path, node) for path, node in ALL if ".spec" in path or ".status" in path]


@pytest.mark.parametrize("name", FILES)
def test_the_committed_file_is_what_the_models_generate(name: str) -> None:
    assert (ROOT / name).read_text() == FILES[name], "run: make generate"


def test_every_field_is_described() -> None:
    bare = [path for path, node in OURS if not path.endswith("[]") and "description" not in node]
    assert bare == []


def test_every_description_is_a_sentence() -> None:
    described = [(path, node["description"]) for path, node in OURS if "description" in node]
    assert [path for path, text in described if not re.fullmatch(r"[A-Z$].*[.:]", text)] == []


def test_every_schema_is_structural() -> None:
    for path, node in ALL:
        assert node.keys() <= KEYWORDS, path
        assert ("type" in node) != ("x-kubernetes-int-or-string" in node), path
        assert "nullable" not in node, path


def test_every_list_says_how_it_merges_and_how_long_it_may_be() -> None:
    for path, node in OURS:
        if node.get("type") == "array":
            assert node.get("x-kubernetes-list-type") in ("map", "atomic", "set"), path
            assert node.get("maxItems"), path


def test_every_text_in_a_spec_that_people_write_has_a_longest_length() -> None:
    for path, node in OURS:
        if ".spec." in path and node.get("type") == "string" and "enum" not in node:
            assert "maxLength" in node or path.endswith("annotations[]"), path


def test_the_keys_of_a_map_list_are_required() -> None:
    for path, node in OURS:
        for key in node.get("x-kubernetes-list-map-keys", []):
            assert key in node["items"]["required"], path


def test_no_default_of_a_sandbox_is_written_by_the_api_server_where_it_would_beat_the_template() -> None:
    assert [path for path, node in ALL if "default" in node] == ["sandboxpools.spec.replicas"]


def test_every_rule_has_a_sentence_for_people() -> None:
    for path, node in ALL:
        for rule in node.get("x-kubernetes-validations", []):
            assert len(rule["message"].split()) >= 5, (path, rule)
            assert not rule["message"].endswith("."), (path, rule)


def test_kubectl_knows_the_resources_by_short_names_and_categories() -> None:
    names = {plural: definition["spec"]["names"] for plural, definition in CRDS.items()}
    assert {plural: each["shortNames"] for plural, each in names.items()} == {
        "sandboxes": ["sbx"],
        "sandboxtemplates": ["sbxt"],
        "sandboxpools": ["sbxp"],
        "sandboxpolicies": ["sbxpol"],
    }
    in_a_namespace = {plural for plural in CRDS if CRDS[plural]["spec"]["scope"] == "Namespaced"}
    assert CRDS.keys() - in_a_namespace == {"sandboxpolicies"}
    assert {plural for plural, each in names.items() if each["categories"] == ["all", "sandpod"]} == (
        in_a_namespace
    )


class Union(BaseModel):
    value: int | str


class Pair(BaseModel):
    value: tuple[int, str]


@pytest.mark.parametrize("model", [Union, Pair])
def test_what_a_crd_cannot_say_fails_when_generating(model: type[BaseModel]) -> None:
    with pytest.raises(NotStructural):
        structural(model)
