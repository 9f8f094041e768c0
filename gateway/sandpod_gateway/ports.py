"""What exposing a port, taking it back and rotating its token make of a Sandbox: pure functions from the
object as it is to a merge patch for it. The patch holds only as long as nobody else has changed the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from sandpod_crds.names import ANNOTATION_TOKEN_VERSION, CONTROL_PORT
from sandpod_crds.previews import HIGHEST_PORT, LOWEST_PORT, may_be_exposed

from .errors import BadRequest, Conflict, Invalid, NotFound
from .routes import exposed_ports, token_version

Json = dict[str, Any]

_FIELDS: Final = ("port", "name", "access")
_ACCESS: Final = ("Token", "Private")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants exposed. What is None stays as it is."""

    port: int
    name: str | None = None
    access: str | None = None

    @classmethod
    def from_object(cls, value: Mapping[str, object]) -> Self:
        if unknown := sorted(set(value) - {*_FIELDS, "kind", "apiVersion"}):
            raise BadRequest(f"unknown fields: {', '.join(unknown)[:200]}; there are {', '.join(_FIELDS)}")
        port, name, access = (value.get(field) for field in _FIELDS)
        if not isinstance(port, int) or isinstance(port, bool) or not may_be_exposed(port):
            raise Invalid(
                f"port must be a number from {LOWEST_PORT} to {HIGHEST_PORT}, and not {CONTROL_PORT}, which "
                "is Sandpod's own"
            )
        if name is not None and not isinstance(name, str):
            raise Invalid("name must be a string, such as web")
        if access is not None and access not in _ACCESS:
            raise Invalid(f"access must be {' or '.join(_ACCESS)}")
        return cls(port=port, name=name, access=cast("str | None", access))


def listed(sandbox: Json) -> list[Json]:
    """All that are exposed, by number, each with everything that counts for it."""
    exposed = exposed_ports(_part(sandbox, "spec"), _part(sandbox, "status"))
    return [
        {
            "port": port,
            **({"name": each["name"]} if each.get("name") else {}),
            "access": each.get("access") or "Token",
            "tokenVersion": token_version(each),
            "inherited": each.get("inherited") is True,
        }
        for port, each in sorted(exposed.items())
    ]


def expose(sandbox: Json, wish: Wish) -> Json | None:
    """None: it is exposed like this already."""
    before = _find(sandbox, wish.port)
    wanted = {
        **({"name": wish.name} if wish.name is not None else {}),
        **({"access": wish.access} if wish.access is not None else {}),
    }
    if before is None:
        version = retired(sandbox) + 1
        entry: Json = {"port": wish.port, **({"tokenVersion": version} if version > 1 else {})}
    elif wanted.items() <= before.items():
        return None
    else:
        # With all that the template says, or a Private port of it would become an open one.
        entry = _written(before)
    return _patch(sandbox, _own_with(sandbox, entry | wanted))


def unexpose(sandbox: Json, port: int) -> Json:
    entry = _found(sandbox, port)
    if entry["inherited"]:
        raise Conflict(
            f"port {port} is exposed by the sandbox's template, and stays so while the template says "
            "it; a new token or access: Private is what can be had here"
        )
    kept = [each for each in _own(sandbox) if each.get("port") != port]
    highest = str(max(retired(sandbox), entry["tokenVersion"]))
    return _patch(sandbox, kept, annotations={ANNOTATION_TOKEN_VERSION: highest})


def rotate(sandbox: Json, port: int) -> Json:
    entry = _found(sandbox, port)
    return _patch(sandbox, _own_with(sandbox, {**_written(entry), "tokenVersion": entry["tokenVersion"] + 1}))


def retired(sandbox: Json) -> int:
    annotations = _part(_part(sandbox, "metadata"), "annotations")
    text = str(annotations.get(ANNOTATION_TOKEN_VERSION) or "")
    # Anybody who may write the object may have put anything there.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0


def _find(sandbox: Json, port: int) -> Json | None:
    return next((each for each in listed(sandbox) if each["port"] == port), None)


def _found(sandbox: Json, port: int) -> Json:
    if (entry := _find(sandbox, port)) is None:
        raise NotFound(f"port {port} is not exposed")
    return entry


def _written(entry: Json) -> Json:
    """As it stands in a spec, without what is so anyway."""
    return {
        "port": entry["port"],
        **({"name": entry["name"]} if "name" in entry else {}),
        **({"access": entry["access"]} if entry["access"] != "Token" or entry["inherited"] else {}),
        **({"tokenVersion": entry["tokenVersion"]} if entry["tokenVersion"] > 1 else {}),
    }


def _own_with(sandbox: Json, entry: Json) -> list[Json]:
    """In its place, so that nobody's manifest looks shuffled."""
    own = _own(sandbox)
    if not any(each.get("port") == entry["port"] for each in own):
        return [*own, entry]
    return [entry if each.get("port") == entry["port"] else each for each in own]


def _own(sandbox: Json) -> list[Json]:
    return list(cast("list[Json]", _part(sandbox, "spec").get("ports") or []))


def _patch(sandbox: Json, ports: list[Json], *, annotations: Json | None = None) -> Json:
    metadata = _part(sandbox, "metadata")
    if "deletionTimestamp" in metadata:
        raise Conflict(f'sandbox "{metadata.get("name")}" is being deleted')
    return {
        "metadata": {
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"ports": ports},
    }


def _part(parent: Json, name: str) -> Json:
    value = parent.get(name)
    return cast("Json", value) if isinstance(value, dict) else {}
