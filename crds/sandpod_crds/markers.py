"""What a model says to the API server beyond its types: CEL rules with the sentence that a user reads, how
lists merge, bounds, defaults. Put into `Annotated[...]` beside the field, or into `rules` of a model.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from .errors import Json


class _Marker:
    """Adds keywords to the schema of what it annotates."""

    def keywords(self, schema: Json) -> Json:
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        schema = handler(core)
        return {**schema, **self.keywords(schema)}


@dataclass(frozen=True)
class Rule(_Marker):
    """A CEL expression over `self` (and `oldSelf`: then it is checked on updates only), and the sentence for
    whoever breaks it, which says what to change. `field` is what to blame when the rule is about one field
    but needs to see more, such as `.workspace.size`.
    """

    rule: str
    sentence: str
    field: str | None = None

    def to_json(self) -> Json:
        rule: Json = {"rule": " ".join(self.rule.split()), "message": self.sentence}
        if self.field is not None:
            rule["fieldPath"] = self.field
        return rule

    def keywords(self, schema: Json) -> Json:
        return {"x-kubernetes-validations": [*schema.get("x-kubernetes-validations", []), self.to_json()]}


@dataclass(frozen=True)
class MapBy(_Marker):
    """A list whose items are told apart by a field: duplicates are refused, and two appliers can each own an
    item.
    """

    key: str

    def keywords(self, schema: Json) -> Json:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}


@dataclass(frozen=True)
class Atomic(_Marker):
    """A list, or an object, that is replaced as a whole."""

    def keywords(self, schema: Json) -> Json:
        return {f"x-kubernetes-{'list' if schema.get('type') == 'array' else 'map'}-type": "atomic"}


@dataclass(frozen=True)
class Bounds(_Marker):
    """Size limits, without which the API server cannot tell what a rule may cost and refuses the CRD."""

    longest: int | None = None
    shortest: int | None = None

    def keywords(self, schema: Json) -> Json:
        noun = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
        bounds = {f"max{noun}": self.longest, f"min{noun}": self.shortest}
        return {name: bound for name, bound in bounds.items() if bound is not None}


@dataclass(frozen=True)
class Default(_Marker):
    """A default that the API server writes into the object. The models' own defaults stay out of the schema,
    as a default written into a Sandbox would win over its template.
    """

    value: Any

    def keywords(self, schema: Json) -> Json:
        return {"default": self.value}


@dataclass(frozen=True)
class IntOrString:
    longest: int

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {"x-kubernetes-int-or-string": True, "maxLength": self.longest}


@dataclass(frozen=True)
class FreeForm:
    """An object that the API server stores as it is."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _alias(name: str) -> str:
    """Kubernetes writes initials in capitals: `pod_ip` -> `podIP`."""
    for initials in ("ip", "uid"):
        if name.endswith(f"_{initials}"):
            return to_camel(name.removesuffix(initials)).rstrip("_") + initials.upper()
    return to_camel(name)


class Model(BaseModel):
    """The base of all models: camelCase outside, snake_case inside, immutable, and deaf to fields that a
    newer version of the CRD may have. The docstring under a field is its description.
    """

    model_config = ConfigDict(
        alias_generator=_alias,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
    rules: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        schema = handler(core)
        if cls.rules:
            definition = handler.resolve_ref_schema(schema)
            definition["x-kubernetes-validations"] = [rule.to_json() for rule in cls.rules]
        return schema

    def to_json(self) -> Json:
        """As the API server wants it: camelCase, and nothing that is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
