"""The description of the API: complete, valid, and the same as the page that is committed."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from sandpod_runtime.errors import STATUS
from sandpod_runtime.openapi.document import document
from sandpod_runtime.openapi.generate import PAGE, routes_of_a_runtime
from sandpod_runtime.openapi.page import page

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
ROUTES = asyncio.run(routes_of_a_runtime())
DOCUMENT = document(ROUTES)
OPERATIONS = [
    (f"{method.upper()} {path}", operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
SCHEMA_WORDS = {
    "$ref", "type", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "title",
    "description", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "pattern", "multipleOf",
    "prefixItems", "contentEncoding", "discriminator",
}  # fmt: skip


def nodes(value: Any) -> Iterator[Json]:
    children: list[Any] = []
    if isinstance(value, dict):
        found = cast("Json", value)
        yield found
        children = list(found.values())
    elif isinstance(value, list):
        children = cast("list[Any]", value)
    for child in children:
        yield from nodes(child)


def test_the_committed_page_is_what_the_models_generate() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(DOCUMENT), "run: make generate"


def test_every_endpoint_is_described() -> None:
    assert {name for name, _ in OPERATIONS} == {f"{method} {path}" for method, path in ROUTES}


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][A-Za-z0-9]*", name) for name in names)


def test_every_reference_leads_somewhere() -> None:
    for node in nodes(DOCUMENT):
        if reference := node.get("$ref"):
            target: Any = DOCUMENT
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]


def test_components_have_names_that_openapi_allows() -> None:
    assert [
        name for name in DOCUMENT["components"]["schemas"] if not re.fullmatch(r"[\w.-]+", name, re.ASCII)
    ] == []


def test_schemas_use_the_words_of_json_schema() -> None:
    def check(schema: Json) -> None:
        assert schema.keys() <= SCHEMA_WORDS, schema
        assert set(schema.get("required", [])) <= set(schema.get("properties", {})), schema
        for child in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
            check(child)
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), dict):
                check(schema[word])

    for schema in DOCUMENT["components"]["schemas"].values():
        check(schema)


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
def test_an_operation_says_what_it_takes_and_gives(name: str, operation: Json) -> None:
    method, path = name.split()
    assert operation["summary"].endswith("."), "a summary is a sentence"
    assert operation["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}
    parameters = operation.get("parameters", [])
    in_path = [each["name"] for each in parameters if each["in"] == "path"]
    assert in_path == re.findall(r"{(\w+)}", path)
    assert all("schema" in each for each in parameters)
    if method == "GET":
        assert "requestBody" not in operation
    assert [status for status in operation["responses"] if status.isdecimal()], "what does it answer?"
    assert operation["responses"]["default"] == {"$ref": "#/components/responses/Error"}


def test_every_code_in_a_table_exists() -> None:
    for route, endpoint in ROUTES.items():
        assert [code for code in endpoint.errors if code not in STATUS] == [], route
        assert len(set(endpoint.errors)) == len(endpoint.errors), route


def test_what_a_reply_always_carries_is_required() -> None:
    ping = DOCUMENT["components"]["schemas"]["PingReply"]
    assert {"success", "timestamp", "uptime"} <= set(ping["required"])
    reply = DOCUMENT["components"]["schemas"]["ExecuteReply"]
    assert "stdoutCut" not in reply["required"]


def test_it_is_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(DOCUMENT)) == DOCUMENT
