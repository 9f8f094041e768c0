"""What to type next, for a sandbox that is not there or not Ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpod._duration import format_duration
from sandpod._observation import observe
from sandpod.errors import NotFound, SandpodError, TimedOut

if TYPE_CHECKING:
    from sandpod._client import Client

_SHOWN = 5


def not_found(client: Client, *, name: str, program: str = "") -> NotFound:
    """Looks around: a name that is nearly the same, the same name in another namespace, or what there is."""
    return NotFound(
        f'There is no sandbox "{name}" in namespace "{client.namespace}".',
        hint=_hint(client, name=name, program=program),
        status=404,
    )


def _hint(client: Client, *, name: str, program: str) -> str:
    here = _names(client, all_namespaces=False)
    elsewhere = [where for where, other in _names(client, all_namespaces=True) if other == name]
    if elsewhere:
        return f"There is one in namespace {elsewhere[0]}: add -n {elsewhere[0]}"
    return suggestion(name, here=[other for _, other in here], program=program)


def not_ready(error: TimedOut, *, waited: float) -> SandpodError:
    """The short form: what the sandbox waits for was told at length when it began to wait for it."""
    now, name = observe(error.last or {}), _metadata(error)["name"]
    return SandpodError(
        f"{name} is not Ready after {format_duration(waited)}: {now.reason or now.phase}.",
        hint=f"What happened: kubectl describe sandbox {place(error)}",
    )


def place(error: TimedOut) -> str:
    """How to name that sandbox to a command."""
    metadata = _metadata(error)
    return f"{metadata['name']} -n {metadata['namespace']}"


def _metadata(error: TimedOut) -> dict[str, str]:
    return (error.last or {})["metadata"]


def suggestion(name: str, *, here: list[str], program: str) -> str:
    """`program` is named to those who could go on with a new sandbox."""
    import difflib

    make_it = f"Make it with: {program} create {name}" if program else ""
    if near := difflib.get_close_matches(name, here, n=1, cutoff=0.75):
        return f"Did you mean {near[0]}? {make_it}".rstrip()
    if not here:
        return make_it
    more = f" and {len(here) - _SHOWN} more" if len(here) > _SHOWN else ""
    return f"There are: {', '.join(sorted(here)[:_SHOWN])}{more}. {make_it}".rstrip()


def _names(client: Client, *, all_namespaces: bool) -> list[tuple[str, str]]:
    from sandpod.sandbox import Sandbox

    try:
        found = Sandbox.list(client=client, all_namespaces=all_namespaces)
    except SandpodError:
        # This is advice about another failure: whoever may not list just gets less of it.
        return []
    return [(sandbox.namespace, sandbox.name) for sandbox in found]
