"""The variables that a warm pod's bind brings: the sandbox's own and those in Secrets and ConfigMaps, which
for a pod of its own the kubelet would look up. Read only where the chart lets the operator, and only when a
sandbox that needs them takes a pod.
"""

import asyncio
import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from sandpod_crds import paths
from sandpod_crds.errors import Forbidden, NotFound
from sandpod_crds.models import SandboxSpec
from sandpod_crds.models.containers import EnvVarSource, KeySelector, ObjectSelector
from sandpod_crds.names import ENV_PREFIX

from ..cluster import Cluster
from ..objects import Json, digest, section
from ..observations import Key
from ..resources.pod import bind_env

# What was read is good for one claim, not for a later one: somebody may have changed it.
GOOD_FOR = timedelta(seconds=30)
MOST_KEPT = 1000
# Linux takes no longer one, and the runtime no NUL; the kubelet says so in its own words.
LONGEST_VALUE = 120 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# A value that is not text is None.
Text = Mapping[str, str | None]
Named = KeySelector | ObjectSelector


class Place(NamedTuple):
    """A Secret or ConfigMap of the sandbox's namespace."""

    kind: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What was found, or why a warm pod cannot have it."""

    # Of whom and of what this is the environment.
    subject: str
    read_at: datetime
    values: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    # May not be read; otherwise `problem` says what is wrong with what was read.
    withheld: bool = False
    problem: str | None = None


class Unusable(Exception):
    """The message says which Secret, ConfigMap or entry of one is missing or is no environment variable."""


def references(spec: SandboxSpec) -> set[Place]:
    """What has to be read so that a warm pod gets the environment of this spec."""
    whole = {_place(source.secret_ref, source.config_map_ref) for source in spec.env_from}
    single = {_place(each.secret_key_ref, each.config_map_key_ref) for each in _sources(spec)}
    return {place for place in whole | single if place is not None}


def may_read(namespace: str, *, allowed: list[str]) -> bool:
    return "*" in allowed or namespace in allowed


def subject_of(uid: str, spec: SandboxSpec) -> str:
    env = [each.to_json() for each in (*spec.env, *spec.env_from)]
    return digest([uid, env])


def resolve(spec: SandboxSpec, found: Mapping[Place, Text | None]) -> dict[str, str]:
    """The variables, in the kubelet's order of precedence. `found` has None for what does not exist. Raises
    Unusable.
    """
    values = dict(_whole_objects(spec, found))
    for variable in spec.env:
        # Without a value of ours: the pod has it from the kubelet, or it is optional and not there.
        values.pop(variable.name, None)
        source = variable.value_from
        selector = source and (source.secret_key_ref or source.config_map_key_ref)
        place = source and _place(source.secret_key_ref, source.config_map_key_ref)
        if selector and place and (value := _entry(place, selector, found)) is not None:
            values[variable.name] = value
    values |= bind_env(spec)
    for name, value in values.items():
        if "\0" in value or len(value.encode()) > LONGEST_VALUE:
            raise Unusable(f"no process could take the variable {name}.")
    return values


class Reader:
    """Reads what a sandbox's environment refers to, and keeps it until the bind."""

    def __init__(self, *, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: OrderedDict[Key, Environment] = OrderedDict()

    def get(self, key: Key) -> Environment | None:
        return self._kept.get(key)

    def drop(self, key: Key) -> None:
        self._kept.pop(key, None)

    async def read(self, key: Key, spec: SandboxSpec, *, subject: str, now: datetime) -> None:
        places = sorted(references(spec))
        try:
            texts = await asyncio.gather(*(self._read(key.namespace, place) for place in places))
        except Forbidden as error:
            found = Environment(subject=subject, read_at=now, withheld=True, problem=error.message)
        else:
            found = _environment(spec, dict(zip(places, texts, strict=True)), subject=subject, now=now)
        self._kept.pop(key, None)
        self._kept[key] = found
        # Also what no bind will take any more, as of a sandbox that was paused.
        while len(self._kept) > MOST_KEPT or now - next(iter(self._kept.values())).read_at > GOOD_FOR:
            self._kept.popitem(last=False)

    async def _read(self, namespace: str, place: Place) -> Text | None:
        path = paths.secrets if place.kind == "Secret" else paths.config_maps
        try:
            found = await self._cluster.get(path(namespace, place.name))
        except NotFound:
            return None
        return _decoded(found) if place.kind == "Secret" else section(found, "data")


def _environment(
    spec: SandboxSpec, found: Mapping[Place, Text | None], *, subject: str, now: datetime
) -> Environment:
    try:
        return Environment(subject=subject, read_at=now, values=resolve(spec, found))
    except Unusable as error:
        return Environment(subject=subject, read_at=now, problem=str(error))


def _sources(spec: SandboxSpec) -> Iterator[EnvVarSource]:
    return (each.value_from for each in spec.env if each.value_from is not None)


def _place(secret: Named | None, config_map: Named | None) -> Place | None:
    if secret is not None:
        return Place("Secret", secret.name)
    return Place("ConfigMap", config_map.name) if config_map is not None else None


def _whole_objects(spec: SandboxSpec, found: Mapping[Place, Text | None]) -> Iterator[tuple[str, str]]:
    for source in spec.env_from:
        place = _place(source.secret_ref, source.config_map_ref)
        selector = source.secret_ref or source.config_map_ref
        if place is None or selector is None:
            continue
        entries = found.get(place)
        if entries is None and not selector.optional:
            raise Unusable(f"the {place.kind} {place.name} does not exist.")
        for name, value in (entries or {}).items():
            variable = (source.prefix or "") + name
            if not _NAME.fullmatch(variable) or variable.startswith(ENV_PREFIX):
                # As the kubelet does with what no shell could name.
                continue
            if value is None:
                raise Unusable(f"the entry {name} of the {place.kind} {place.name} is not text.")
            yield variable, value


def _entry(place: Place, selector: KeySelector, found: Mapping[Place, Text | None]) -> str | None:
    entries = found.get(place) or {}
    if selector.key not in entries:
        if selector.optional:
            return None
        raise Unusable(f"the {place.kind} {place.name} has no entry {selector.key}.")
    value = entries[selector.key]
    if value is None:
        raise Unusable(f"the entry {selector.key} of the {place.kind} {place.name} is not text.")
    return value


def _decoded(secret: Json) -> Text:
    return {name: _text(value) for name, value in section(secret, "data").items()}


def _text(value: str) -> str | None:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
