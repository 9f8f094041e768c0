"""What a sandbox takes from its template: its own fields laid over the template's. On the JSON of the two,
where a field that says false differs from one that says nothing. Pure.

Which lists merge by which key is what the CRD says. A list or map that the sandbox gives as empty is empty:
there is no other way to want none of the template's. In a podTemplate, the rules of pods hold.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from sandpod_crds.models import SandboxFields, SandboxSpec
from sandpod_crds.models.sandbox_rules import ALLOW_SENTENCE, ROOT_SENTENCE, SIZED_SENTENCE
from sandpod_crds.schema import structural

from .objects import Json, section
from .quantities import Amount, parse
from .resources.merge import combine

_SCHEMA: Final = structural(SandboxSpec)
# What says where the rest comes from cannot come from there.
_INHERITED: Final = frozenset(structural(SandboxFields)["properties"])
# A variable is a value or where to find one. Merged field by field it would be both, which is neither.
_WHOLE_ITEMS: Final = frozenset({"env"})
# What works on a running sandbox without a new pod.
_LIVE: Final = ("keepAlive", "lifetime", "network", "ports", "sleepAfter", "workspace")


def merge_spec(*, template: Json, own: Json) -> Json:
    """The spec that holds for the sandbox. Neither argument is changed."""
    inherited = {name: value for name, value in template.items() if name in _INHERITED}
    for name, excluded in _excluded(own):
        if name in inherited:
            inherited[name] = {key: each for key, each in inherited[name].items() if key not in excluded}
    merged = _merge(inherited, own, schema=_SCHEMA)
    if "resources" in inherited and "resources" in own:
        merged["resources"] = _consistent(merged["resources"], own=own["resources"])
    return merged


def check_merged(spec: SandboxSpec) -> str | None:
    """What keeps a merged spec from being started, of that which the API server could not see before."""
    return next(_contradictions(spec), None)


def live_part(template: Json) -> Json:
    """What is recorded when a pod starts, for `frozen`."""
    return {name: template[name] for name in _LIVE if name in template}


def frozen(*, template: Json, recorded: Json) -> Json:
    """The template as far as a sandbox that runs may see it: a changed one works from the next start on, also
    where a change of the sandbox itself works at once.
    """
    return {**{name: value for name, value in template.items() if name not in _LIVE}, **recorded}


def _merge(base: Any, own: Any, *, schema: Json, name: str = "") -> Any:
    if isinstance(base, dict) and isinstance(own, dict):
        return _merge_objects(cast("Json", base), cast("Json", own), schema=schema)
    if isinstance(base, list) and own and schema.get("x-kubernetes-list-type") == "map":
        return _merge_items(cast("list[Json]", base), cast("list[Json]", own), schema=schema, name=name)
    return own


def _merge_objects(base: Json, own: Json, *, schema: Json) -> Json:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return combine(base, own)
    if schema.get("x-kubernetes-map-type") == "atomic":
        return own
    if "additionalProperties" in schema:
        return {**base, **own} if own else own
    # The API server drops nulls; one that came here nonetheless says as little as a field that is not there.
    given = {name: value for name, value in own.items() if value is not None}
    fields = schema.get("properties", {})
    return {
        **base,
        **{
            name: _merge(base[name], value, schema=fields.get(name, {}), name=name) if name in base else value
            for name, value in given.items()
        },
    }


def _merge_items(base: list[Json], own: list[Json], *, schema: Json, name: str) -> list[Json]:
    key: str = schema["x-kubernetes-list-map-keys"][0]
    merged = {item[key]: item for item in base}
    for item in own:
        before = merged.get(item[key])
        merge = before is not None and name not in _WHOLE_ITEMS
        merged[item[key]] = _merge(before, item, schema=schema["items"]) if merge else item
    return list(merged.values())


def _excluded(own: Json) -> Iterator[tuple[str, frozenset[str]]]:
    """Of which fields of the template the sandbox has chosen the alternative."""
    workspace = section(own, "workspace")
    if "claimName" in workspace:
        yield "workspace", frozenset({"size", "storageClassName", "reclaim"})
    elif workspace:
        yield "workspace", frozenset({"claimName"})
    if section(own, "network").get("egress", "Restricted") != "Restricted":
        yield "network", frozenset({"allow"})


def _consistent(merged: Json, *, own: Json) -> Json:
    """As with the chart's defaults: a request or limit of the sandbox moves one of the template that it could
    not stand beside.
    """
    requests, limits = dict(section(merged, "requests")), dict(section(merged, "limits"))
    for name in requests.keys() & limits.keys():
        if not _more(requests[name], limits[name]):
            continue
        if name not in section(own, "limits"):
            limits[name] = requests[name]
        elif name not in section(own, "requests"):
            requests[name] = limits[name]
    amounts = {"requests": requests, "limits": limits}
    return {kind: amounts.get(kind, value) for kind, value in merged.items()}


def _more(one: Amount, other: Amount) -> bool:
    try:
        return parse(one) > parse(other)
    except ValueError:
        return False


def _contradictions(spec: SandboxSpec) -> Iterator[str]:
    if spec.user == "root" and spec.isolation != "Strict":
        yield ROOT_SENTENCE
    if spec.network is not None and spec.network.allow and spec.network.egress != "Restricted":
        yield ALLOW_SENTENCE
    if spec.workspace is not None and spec.workspace.size is None and spec.workspace.claim_name is None:
        yield SIZED_SENTENCE
    names = [port.name for port in spec.ports if port.name is not None]
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        yield f"two ports have the name {twice}, one of them in the template; give each a name of its own"
    yield from _too_long(spec.to_json(), schema=_SCHEMA, path="")


def _too_long(value: Any, *, schema: Json, path: str) -> Iterator[str]:
    """Two lists that are short enough can be too long together."""
    longest = schema.get("maxItems", schema.get("maxProperties"))
    if longest is not None and len(value) > longest:
        yield f"{path} has {len(value)} entries together with the template's; at most {longest} are possible"
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _too_long(item, schema=schema["items"], path=f"{path}[]")
    elif isinstance(value, dict):
        for name, child in cast("Json", value).items():
            if name in schema.get("properties", {}):
                below = f"{path}.{name}" if path else name
                yield from _too_long(child, schema=schema["properties"][name], path=below)
