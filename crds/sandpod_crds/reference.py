"""docs/reference/sandbox.md: every field of the four resources with its type and description, and every
sentence with which the API server refuses one, from the same schemas that the API server gets.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .errors import Json

_INTRODUCTION = """\
<!-- Generated from the models in crds/sandpod_crds by `make generate`. Do not edit. -->

# Reference: Sandbox, SandboxTemplate, SandboxPool, SandboxPolicy

The same words as `kubectl explain sandbox --recursive`. The first three live in a namespace, and
`kubectl get sandpod` lists them together; a SandboxPolicy is the cluster's.
"""


def page(definitions: dict[str, Json]) -> str:
    """`definitions` in reading order: what an earlier one has said is not said again."""
    lines = [_INTRODUCTION]
    seen = _Seen({}, set())
    for crd in definitions.values():
        lines += _resource(crd, seen)
        schema = _schema(crd)
        seen.specs[crd["spec"]["names"]["kind"]] = schema["properties"]["spec"]["properties"]
        seen.rules.update(_rules(schema, path=""))
    return "\n".join(lines)


class _Seen(NamedTuple):
    specs: dict[str, Json]
    rules: set[tuple[str, str]]


def _schema(crd: Json) -> Json:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _resource(crd: Json, seen: _Seen) -> Iterator[str]:
    names, schema = crd["spec"]["names"], _schema(crd)
    version = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
    yield f"## {names['kind']}\n"
    yield f"`apiVersion: {version}`, `kubectl get {names['plural']}`, short `{names['shortNames'][0]}`.\n"
    yield f"{schema['description']}\n"
    for part in ("spec", "status"):
        if part in schema["properties"]:
            yield from _part(names["kind"], part, schema["properties"][part], seen)
    yield f"### {names['kind']}: what the API server refuses\n"
    rules = list(_rules(schema, path=""))
    if seen.rules.intersection(rules):
        yield "Besides what it refuses above, where the fields are the same:\n"
    yield "| field | what it says |"
    yield "|---|---|"
    for sentence, paths in _by_sentence(rule for rule in rules if rule not in seen.rules).items():
        yield f"| {'<br>'.join(f'`{path}`' for path in paths)} | {_cell(sentence)} |"
    yield ""


def _part(kind: str, name: str, schema: Json, seen: _Seen) -> Iterator[str]:
    yield f"### {kind}: {name}\n"
    yield f"{schema['description']}\n"
    fields = schema["properties"]
    if name == "spec":
        for other, known in seen.specs.items():
            if fields.items() <= known.items():
                left_out = ", ".join(f"`{field}`" for field in known if field not in fields)
                yield f"The fields are those of a {other}'s spec without {left_out}.\n"
                return
    yield "| field | type | what it is |"
    yield "|---|---|---|"
    yield from _fields(schema, path="")
    yield ""


def _fields(schema: Json, *, path: str) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        here = f"{path}{name}"
        required = ", required" if name in schema.get("required", []) else ""
        yield f"| `{here}` | {_type(child)}{required} | {_cell(child['description'])} |"
        inner = child.get("items", child)
        yield from _fields(inner, path=f"{here}[]." if "items" in child else f"{here}.")


def _rules(schema: Json, *, path: str) -> Iterator[tuple[str, str]]:
    """Each rule's sentence with the field that it blames."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield rule["message"], (path + rule.get("fieldPath", "")).lstrip(".")
    for name, child in schema.get("properties", {}).items():
        yield from _rules(child, path=f"{path}.{name}")
    for name, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if name in schema:
            yield from _rules(schema[name], path=f"{path}{suffix}")


def _by_sentence(rules: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for sentence, path in rules:
        found.setdefault(sentence, []).append(path)
    return found


def _type(schema: Json) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    if schema.get("format") == "date-time":
        return "time"
    return str(schema["type"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
