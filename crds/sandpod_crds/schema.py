"""From a pydantic model to a structural schema as the API server wants it in a CRD: no references, no null,
no unions but int-or-string, only keywords that it knows. What cannot be expressed fails here, not in the
cluster.
"""

from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from .errors import Json, NotStructural

KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "properties",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)


def structural(model: type[BaseModel]) -> Json:
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator, mode="validation")
    definitions = cast("dict[str, Json]", schema.pop("$defs", {}))
    return _clean(schema, definitions, where=model.__name__)


class _Generator(GenerateJsonSchema):
    def generate(
        self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation"
    ) -> JsonSchemaValue:
        json = super().generate(schema, mode)
        json.pop("$schema", None)
        return json

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        # `X | None = None` is an optional field: the API server prunes nulls, so one can never be stored.
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        # Defaults of the models are ours to apply, after a template was merged in; see markers.Default.
        return self.generate_inner(schema["schema"])

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonSchemaValue:
        raise NotStructural("a union: a CRD knows none but int-or-string")

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        if schema.get("variadic_item_index") != 0 or len(schema["items_schema"]) != 1:
            raise NotStructural("a tuple of different things: the items of a list must be alike")
        return {"type": "array", "items": self.generate_inner(schema["items_schema"][0])}

    def any_schema(self, schema: core_schema.AnySchema) -> JsonSchemaValue:
        return {"x-kubernetes-preserve-unknown-fields": True}

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return {"type": "integer", "format": "int64"}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return {"type": "string", "enum": [str(value) for value in schema["expected"]]}

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return {"type": "string", "enum": [str(member.value) for member in schema["members"]]}


def _clean(schema: Json, definitions: dict[str, Json], *, where: str) -> Json:
    schema = _inline(schema, definitions)
    schema.pop("title", None)
    if "description" in schema:
        # A docstring is wrapped for those who read the code; kubectl wraps by itself.
        schema["description"] = " ".join(schema["description"].split())
    if schema.get("additionalProperties") is True:
        del schema["additionalProperties"]
        schema["x-kubernetes-preserve-unknown-fields"] = True
    unknown = schema.keys() - KEYWORDS
    if unknown:
        raise NotStructural(f"{where}: a CRD's schema does not know {', '.join(sorted(unknown))}")
    if not {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"} & schema.keys():
        raise NotStructural(f"{where} has no type")
    for name in ("items", "additionalProperties"):
        if name in schema:
            schema[name] = _clean(schema[name], definitions, where=f"{where}.{name}")
    if "properties" in schema:
        schema["properties"] = {
            name: _clean(child, definitions, where=f"{where}.{name}")
            for name, child in schema["properties"].items()
        }
    return dict(sorted(schema.items(), key=_reading_order))


def _inline(schema: Json, definitions: dict[str, Json]) -> Json:
    """The definition instead of a reference to it. What stands beside the reference wins, and rules add
    up."""
    schema = dict(schema)
    while "$ref" in schema:
        target = definitions[str(schema.pop("$ref")).rpartition("/")[2]]
        rules = [*target.get("x-kubernetes-validations", []), *schema.get("x-kubernetes-validations", [])]
        schema = {**target, **schema}
        if rules:
            schema["x-kubernetes-validations"] = rules
    return schema


def _reading_order(item: tuple[str, Any]) -> tuple[int, str]:
    order = ["description", "type"]
    name = item[0]
    return (order.index(name) if name in order else len(order) + (name == "properties"), name)
