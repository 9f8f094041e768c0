"""Preview URLs: `{port}-{name}-{token}.{domain}`. Each port of a sandbox has one. The operator writes
it down, the gateway recognizes it again. Nothing in it is a secret but the token.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from .names import CONTROL_PORT

MAX_LABEL: Final = 63
LOWEST_PORT: Final = 1024
HIGHEST_PORT: Final = 65535
# Of the name, as much as fits beside the longest port, the token and two hyphens.
_NAME_CHARACTERS: Final = MAX_LABEL - len(f"{HIGHEST_PORT}--") - 20

# Canonical decimal and nothing else: a port that is written in two ways is two hosts with one meaning.
_LABEL: Final = re.compile(
    r"(?P<port>[1-9][0-9]{3,4})-(?P<name>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)-(?P<token>[a-z2-7]{20})"
)
_DOMAIN: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$"


class Site(BaseModel):
    """Where previews live, as operator and gateway have to agree on it. `port` is the one in the URLs; 0 is
    the scheme's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    # A label takes 63 characters and the dot one more; a host name may have 253.
    domain: Annotated[str, Field(pattern=_DOMAIN, max_length=189)] = "sandpod.localhost"
    scheme: Literal["http", "https"] = "http"
    port: int = Field(default=0, ge=0, le=HIGHEST_PORT)

    def host(self, address: "PreviewAddress") -> str:
        """Of a URL and of an Ingress: without the port."""
        return f"{address.label}.{self.domain}"

    def url(self, address: "PreviewAddress") -> str:
        default = {"http": 80, "https": 443}[self.scheme]
        port = "" if self.port in (0, default) else f":{self.port}"
        return f"{self.scheme}://{self.host(address)}{port}/"

    def covers(self, host: str) -> bool:
        """Whether a request's host name, without its port, is to be read as a preview's at all."""
        return host.endswith(f".{self.domain}")

    def address_in(self, host: str) -> "PreviewAddress | None":
        """What a host name asks for, in lower case and without its port. None: it is no preview's."""
        return PreviewAddress.parse(host.removesuffix(f".{self.domain}")) if self.covers(host) else None


@dataclass(frozen=True, slots=True)
class PreviewAddress:
    """`name` as it stands in the label: cut to fit, with hyphens for dots. It tells people where they are;
    what opens the port is the token.
    """

    port: int
    name: str
    token: str

    @classmethod
    def of(cls, *, port: int, sandbox: str, token: str) -> Self:
        if not may_be_exposed(port):
            raise ValueError(f"port {port} is never exposed")
        return cls(port=port, name=short_name(sandbox), token=token)

    @classmethod
    def parse(cls, label: str) -> Self | None:
        if len(label) > MAX_LABEL or (found := _LABEL.fullmatch(label)) is None:
            return None
        port = int(found["port"])
        return cls(port=port, name=found["name"], token=found["token"]) if may_be_exposed(port) else None

    @property
    def label(self) -> str:
        return f"{self.port}-{self.name}-{self.token}"


def may_be_exposed(port: int) -> bool:
    return LOWEST_PORT <= port <= HIGHEST_PORT and port != CONTROL_PORT


def short_name(sandbox: str) -> str:
    return sandbox.replace(".", "-")[:_NAME_CHARACTERS].rstrip("-")
