"""docs/reference/runtime-api.md: the OpenAPI document as a page that one reads."""

import json
from collections.abc import Iterator
from typing import Any, cast

Json = dict[str, Any]

_HEAD = """\
<!-- Generated from the models in runtime/sandpod_runtime by `make generate`. Do not edit. -->

# Reference: the runtime's API

Everything that the server in a sandbox answers; `GET /openapi.json` describes the same for programs. A field
is optional unless it says "required"; in replies and events it is there unless it says "may be absent".
"""


def page(document: Json) -> str:
    return "\n".join(_Page(document).lines()).rstrip() + "\n"


class _Page:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._schemas: Json = document["components"]["schemas"]

    def lines(self) -> Iterator[str]:
        yield _HEAD
        yield self._document["info"]["description"] + "\n"
        by_tag: dict[str, list[tuple[str, Json]]] = {}
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items():
                by_tag.setdefault(operation["tags"][0], []).append((f"{method.upper()} {path}", operation))
        for tag, operations in by_tag.items():
            names = ", ".join(f"[`{name}`](#{_anchor(name)})" for name, _ in operations)
            yield f"- **{tag}**: {names}"
        yield ""
        for tag, operations in by_tag.items():
            yield f"## {tag}\n"
            for name, operation in operations:
                yield from self._operation(name, operation)
        yield "## errors\n"
        yield "The shape of every error.\n"
        yield from self._fields({"$ref": "#/components/schemas/ErrorReply"}, sent=True)

    def _operation(self, name: str, operation: Json) -> Iterator[str]:
        yield f"### {name}\n"
        yield f"{operation['summary']}\n"
        if operation.get("security") == []:
            yield "Needs no credential.\n"
        yield from self._parameters(operation.get("parameters", []))
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            if "schema" in content:
                yield self._heading("Body", content["schema"])
                yield from self._fields(content["schema"], sent=False)
            else:
                yield f"**Body**: `{media}`.\n"
        yield from self._replies(operation["responses"])
        errors = [
            f"{status} {each['description']}"
            for status, each in operation["responses"].items()
            if status.isdecimal() and status >= "400"
        ]
        if errors:
            yield f"**Errors**: {'; '.join(errors)}.\n"

    def _parameters(self, parameters: list[Json]) -> Iterator[str]:
        if not parameters:
            return
        yield "| in | parameter | type | |"
        yield "|---|---|---|---|"
        for each in parameters:
            schema = each["schema"] | {"default": each["schema"].get("default")}
            about = self._description(schema, required=each["required"])
            yield f"| {each['in']} | `{each['name']}` | {self._type(each['schema'])} | {about} |"
        yield ""

    def _replies(self, responses: Json) -> Iterator[str]:
        if "101" in responses:
            yield f"**WebSocket**: {responses['101']['description']}\n"
            return
        for media, content in responses.get("200", {}).get("content", {}).items():
            if media == "text/event-stream":
                yield "**Events**\n"
                for event in content["schema"]["oneOf"]:
                    kind = self._resolved(event)["properties"].get("type", {}).get("enum", ["event"])[0]
                    yield f"`{kind}` {self._about(event)}".rstrip() + "\n"
                    yield from self._fields(event, sent=True)
            elif "schema" in content:
                for number, reply in enumerate(content["schema"].get("anyOf", [content["schema"]])):
                    yield self._heading("Other reply" if number else "Reply", reply)
                    yield from self._fields(reply, sent=True)
            else:
                yield f"**Reply**: `{media}`.\n"

    def _heading(self, name: str, schema: Json) -> str:
        about = self._about(schema)
        return f"**{name}**: {about}\n" if about else f"**{name}**\n"

    def _about(self, schema: Json) -> str:
        return " ".join(self._resolved(schema).get("description", "").split())

    def _fields(self, schema: Json, *, sent: bool) -> Iterator[str]:
        rows = list(self._rows(self._resolved(schema), path="", sent=sent, above=()))
        if rows:
            yield "| field | type | |"
            yield "|---|---|---|"
            yield from rows
            yield ""

    def _rows(self, schema: Json, *, path: str, sent: bool, above: tuple[str, ...]) -> Iterator[str]:
        required = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            if sent and not path and name == "type":
                continue
            about = self._description(field, required=name in required, sent=sent)
            yield f"| `{path}{name}` | {self._type(field)} | {about} |"
            below, suffix = self._nested(field)
            title = below.get("title", "")
            if below.get("properties") and title not in above:
                yield from self._rows(below, path=f"{path}{name}{suffix}.", sent=sent, above=(*above, title))

    def _nested(self, field: Json) -> tuple[Json, str]:
        """The object that a field holds, or a list of them, and how its path says so."""
        for variant in _variants(field):
            resolved = self._resolved(variant)
            if "properties" in resolved:
                return resolved, ""
            for name, suffix in (("items", "[]"), ("additionalProperties", ".*")):
                if (inner := _object(resolved.get(name))) is not None:
                    found, deeper = self._nested(inner)
                    if found:
                        return found, suffix + deeper
        return {}, ""

    def _type(self, schema: Json) -> str:
        return " or ".join(dict.fromkeys(self._one_type(each) for each in _variants(schema)))

    def _one_type(self, schema: Json) -> str:
        schema = self._resolved(schema)
        if "enum" in schema:
            return " or ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
        kind = schema.get("type", "anything")
        if kind == "array":
            return f"list of {self._type(schema.get('items', {}))}"
        if kind == "object" and (inner := _object(schema.get("additionalProperties"))) is not None:
            return f"object of {self._type(inner)}"
        return kind

    def _description(self, field: Json, *, required: bool, sent: bool = False) -> str:
        parts: list[str] = []
        if sent:
            parts += [] if required else ["may be absent"]
        elif required:
            parts.append("required")
        elif field.get("default") is not None and field["default"] not in ([], {}):
            parts.append(f"default `{json.dumps(field['default'], ensure_ascii=False)}`")
        texts = [text for each in [field, *_variants(field)] if (text := each.get("description"))]
        for variant in _variants(field):
            parts += _bounds(variant)
        sentence = ", ".join(parts)
        text = " ".join(" ".join(dict.fromkeys(texts)).split())
        return "; ".join(each for each in (sentence, text) if each).replace("|", "\\|")

    def _resolved(self, schema: Json) -> Json:
        if reference := schema.get("$ref"):
            return self._schemas[reference.rpartition("/")[2]]
        return schema


def _object(value: object) -> Json | None:
    return cast("Json", value) if isinstance(value, dict) else None


def _variants(schema: Json) -> list[Json]:
    """What a value may be, without null: for an optional field that is the same as leaving it out."""
    variants = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return [each for each in variants if each.get("type") != "null"] or [schema]


def _bounds(schema: Json) -> Iterator[str]:
    names = {
        "minimum": "at least {}",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "less than {}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "minItems": "at least {} of them",
        "maxItems": "at most {} of them",
        "pattern": "matches `{}`",
    }
    for keyword, words in names.items():
        if keyword in schema:
            yield words.format(schema[keyword])


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    kept = "".join(each for each in heading.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")
