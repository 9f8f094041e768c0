"""The ports that a sandbox exposes: their preview URLs, and an Ingress for each. They follow the spec whether
the sandbox works, sleeps or waits, and never hold it up. Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sandpod_crds.keys import preview_token
from sandpod_crds.models import Condition, PortStatus
from sandpod_crds.models.parts import Port
from sandpod_crds.names import LABEL_SANDBOX_UID, ConditionType
from sandpod_crds.previews import PreviewAddress

from .conditions import Verdict, verdict
from .kinds import INGRESS
from .objects import Json, entries, section, uid_of
from .plan import Plan, Verb, Write
from .reasons import Reason
from .resources.ingress import build_ingress, correction, is_as_wanted

if TYPE_CHECKING:
    from .case import Case


def expose_the_ports(plan: Plan, case: "Case") -> Plan:
    """Before anything else, but for what brings a pod: nobody waits for a start because of an Ingress."""
    if plan.writes or plan.reading or plan.claim or plan.create_pod or case.refusal_of(INGRESS) is not None:
        return plan
    writes = tuple(_changes(case))
    # What the runtime is being asked goes on. The rest is decided again when these have been written.
    return Plan(writes=writes, ask=plan.ask, look_again_at=plan.look_again_at) if writes else plan


def withdraw(ingresses: Iterable[Json]) -> tuple[Write, ...]:
    """Delete these, unless that is under way."""
    return tuple(
        Write(
            verb=Verb.DELETE,
            kind=INGRESS,
            namespace=found["metadata"]["namespace"],
            name=found["metadata"]["name"],
            uid=uid_of(found),
        )
        for found in ingresses
        if not _is_going(found)
    )


def exposed_ports(case: "Case") -> tuple[PortStatus, ...]:
    """As the status shows them. Without the template, nobody knows more than it says already."""
    if not case.knows_files_and_network:
        return case.status.ports
    inherited = {port.get("port") for port in entries(case.effective.inherited or {}, "ports")}
    return tuple(
        PortStatus(
            port=port.port,
            name=port.name,
            url=_url(port, case),
            access=port.access,
            token_version=port.token_version,
            inherited=port.port in inherited,
        )
        for port in case.spec.ports
    )


def preview_verdict(case: "Case", *, before: Condition | None) -> Verdict:
    kind = ConditionType.PREVIEW_READY
    if not case.knows_files_and_network and before is not None:
        return Verdict(kind, before.status == "True", Reason(before.reason), before.message)
    if not case.ports:
        return verdict(kind, True, Reason.NO_PORTS)
    if case.settings.previews.mode == "None":
        return verdict(kind, False, Reason.NO_PREVIEWS)
    missing = any(True for _ in _changes(case)) or any(map(_is_going, _found_ones(case)))
    if not missing:
        return verdict(kind, True, Reason.EXPOSED)
    refusal = case.refusal_of(INGRESS)
    if refusal is None:
        return verdict(kind, False, Reason.EXPOSING)
    says_it_all = refusal.reason in (Reason.INGRESS_TAKEN, Reason.UNDONE)
    reason = refusal.reason if says_it_all else Reason.INGRESS_REFUSED
    return verdict(kind, False, reason, refusal.message)


def _changes(case: "Case") -> Iterator[Write]:
    yield from withdraw(found for found in case.ingresses if not _is_of(found, case))
    if not case.knows_files_and_network:
        return
    wanted = _wanted(case)
    known = {found["metadata"]["name"]: found for found in case.ingresses if _is_of(found, case)}
    yield from withdraw(found for name, found in known.items() if name not in wanted)
    for name, body in wanted.items():
        yield from _put_up(known.get(name), body)


def _put_up(found: Json | None, wanted: Json) -> Iterator[Write]:
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    write = Write(verb=Verb.CREATE, kind=INGRESS, namespace=namespace, name=name, body=wanted)
    if found is None:
        yield write
    elif not _is_going(found) and not is_as_wanted(found, wanted):
        yield replace(write, verb=Verb.PATCH, body=correction(found, wanted))


def _found_ones(case: "Case") -> Iterator[Json]:
    wanted = _wanted(case)
    return (found for found in case.ingresses if found["metadata"]["name"] in wanted)


def _wanted(case: "Case") -> dict[str, Json]:
    """By name"""
    if case.settings.previews.mode != "Ingress" or not case.ports:
        return {}
    metadata = case.sandbox.metadata
    return case.installation.memo.recall(
        ("ingresses", case.uid),
        (case.ports, metadata.namespace, metadata.name),
        lambda: {body["metadata"]["name"]: body for body in _build(case)},
    )


def _build(case: "Case") -> Iterator[Json]:
    site = case.settings.previews.site
    for port in case.ports:
        host = site.host(_address(port, case))
        yield build_ingress(port, host=host, sandbox=case.sandbox, installation=case.installation)


def _url(port: Port, case: "Case") -> str | None:
    previews = case.settings.previews
    return previews.site.url(_address(port, case)) if previews.mode != "None" else None


def _address(port: Port | PortStatus, case: "Case") -> PreviewAddress:
    key = case.installation.key
    token = preview_token(key=key, sandbox_uid=case.uid, port=port.port, version=port.token_version)
    return PreviewAddress.of(port=port.port, sandbox=case.sandbox.metadata.name, token=token)


def _is_of(found: Json, case: "Case") -> bool:
    """Not of an earlier sandbox of this name."""
    return section(found["metadata"], "labels").get(LABEL_SANDBOX_UID) == case.uid


def _is_going(found: Json) -> bool:
    return "deletionTimestamp" in found["metadata"]
