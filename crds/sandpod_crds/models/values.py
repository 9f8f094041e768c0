"""The kinds of value that many fields share: names, durations, quantities, ports. Each knows its limits and
says in a sentence what is wrong with a bad one.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from .. import durations
from ..errors import Json
from ..markers import Bounds, FreeForm, IntOrString, Rule
from ..names import CONTROL_PORT, ENV_PREFIX

YEAR = 365 * 24 * 3600

Object = Annotated[Json, FreeForm()]


@dataclass(frozen=True)
class Duration:
    """Marks a number of seconds that is written as a duration or as whole seconds."""

    shortest: int
    longest: int
    sentence: str

    def __get_pydantic_core_schema__(self, source: type[float], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            durations.parse,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(
                durations.format, return_schema=core_schema.str_schema()
            ),
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        low, high = self.shortest, self.longest
        rule = Rule(
            f"""type(self) == int ? (self >= {low} && self <= {high})
            : self.matches('{durations.SECONDS_PATTERN}') ? (int(self) >= {low} && int(self) <= {high})
            : (self != '' && self.matches('{durations.UNITS_PATTERN}')
            && duration(self) >= duration('{low}s') && duration(self) <= duration('{high}s'))""",
            "write a duration such as 45s, 10m or 1h30m, or whole seconds such as 600 (a day is 24h), "
            + self.sentence,
        )
        schema: Json = {"x-kubernetes-int-or-string": True, "maxLength": durations.MAX_LENGTH}
        return {**schema, **rule.keywords(schema)}


def _at_least(amount: str) -> str:
    return f"isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('{amount}')) >= 0"


Quantity = Annotated[
    int | str,
    IntOrString(longest=32),
    Rule(
        _at_least("0"),
        "write an amount such as 500m or 2 (CPUs), 512Mi or 4Gi (bytes); GB, MB and spaces are not "
        "understood",
    ),
]

# The lower bound catches `10m`, which is ten thousandths of a byte.
VolumeSize = Annotated[
    int | str,
    IntOrString(longest=32),
    Rule(
        _at_least("1Mi"),
        "write a size of at least 1Mi, such as 10Gi; GB and MB are not understood, and a small m means "
        "thousandths",
    ),
]

Text = Annotated[str, Bounds(longest=32768)]

DnsName = Annotated[
    str,
    Bounds(longest=253),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "write the name of an object: lower-case letters, digits, hyphens and dots, such as my-object",
    ),
]

Label = Annotated[
    str,
    Bounds(longest=63),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "write a short name of lower-case letters, digits and hyphens, such as dev-server",
    ),
]

ConfigKey = Annotated[str, Bounds(longest=253, shortest=1)]

EnvName = Annotated[
    str,
    Bounds(longest=253),
    Rule(
        "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
        "write the variable's name with letters, digits and underscores, not starting with a digit, such as "
        "MY_VAR",
    ),
    Rule(
        f"!self.startsWith('{ENV_PREFIX}')",
        f"names that start with {ENV_PREFIX} belong to Sandpod and would not reach your commands; choose "
        "another",
    ),
]

_PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
ImageReference = Annotated[
    str,
    Bounds(longest=512),
    Rule(
        f"""self.matches('^([a-zA-Z0-9-]+([.][a-zA-Z0-9-]+)*(:[0-9]+)?/)?{_PART}(/{_PART})*"""
        """(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?$')""",
        "write an image as registry/path:tag or registry/path@sha256:digest, such as "
        "registry.example.com/tools:1.2; no https://, no spaces, the path in lower case",
    ),
]

AbsolutePath = Annotated[
    str,
    Bounds(longest=4096),
    Rule("self.startsWith('/')", "write an absolute path, such as /workspace/app"),
]

ListenPort = Annotated[
    int,
    Rule(
        "self >= 1024 && self <= 65535",
        "choose a port from 1024 to 65535; below 1024 only root could listen",
    ),
    Rule(
        f"self != {CONTROL_PORT}",
        f"port {CONTROL_PORT} is taken by Sandpod in every sandbox; let your program listen on another, such "
        "as 8080",
    ),
]

User = Annotated[
    int | Literal["root"],
    IntOrString(longest=32),
    Rule(
        "type(self) == int ? (self >= 1 && self <= 2147483647) : self == 'root'",
        "write a numeric UID from 1 to 2147483647 without quotes, or the word root (not 0), which needs "
        "isolation: Strict",
    ),
]
