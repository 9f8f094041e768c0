"""The spec that holds for a sandbox: its own fields, over those of the template that it names itself or by
its pool. Pure.
"""

from dataclasses import dataclass

from pydantic import ValidationError
from sandpod_crds.models import Sandbox, SandboxSpec

from .objects import Json
from .reasons import Reason
from .templates import check_merged, frozen, live_part, merge_spec


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the sandbox's fields come from, as JSON: what is not set is not there."""

    own: Json | None = None
    # None when the sandbox names none, or one that is not there.
    template: Json | None = None
    # What is named and missing
    missing: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Effective:
    spec: SandboxSpec
    # To be recorded on the pod: the part of the template that works on a running sandbox.
    live: Json | None = None
    # What it has from its template
    inherited: Json | None = None
    # Why no sandbox can be made from these two; `spec` is what the pod that is there goes by then, or else
    # the sandbox's own.
    trouble: tuple[Reason, str] | None = None


def effective_spec(sandbox: Sandbox, source: Source, *, recorded: Json | None) -> Effective:
    """`recorded` is what a pod that is there says about the template that it was made from."""
    if source.missing is not None:
        kept = _kept(sandbox, source, recorded=recorded)
        return Effective(spec=kept, inherited=recorded, trouble=(Reason.TEMPLATE_MISSING, source.missing))
    if source.template is None:
        # To have had none is recorded too: so its pod goes on when a template is named that is not there.
        return Effective(spec=sandbox.spec, live={})
    live = live_part(source.template)
    template = source.template if recorded is None else frozen(template=source.template, recorded=recorded)
    try:
        spec = SandboxSpec.model_validate(merge_spec(template=template, own=source.own or {}))
        contradiction = check_merged(spec)
    except ValidationError as error:
        contradiction, spec = _sentence(error), sandbox.spec
    if contradiction is not None:
        kept = _kept(sandbox, source, recorded=recorded)
        return Effective(spec=kept, inherited=recorded, trouble=(Reason.INVALID_TEMPLATE, contradiction))
    return Effective(spec=spec, live=live, inherited=template)


def _kept(sandbox: Sandbox, source: Source, *, recorded: Json | None) -> SandboxSpec:
    """What a pod that is there goes on by: its network and its files must not change with a lost template."""
    if recorded is None:
        return sandbox.spec
    try:
        return SandboxSpec.model_validate(merge_spec(template=recorded, own=source.own or {}))
    except ValidationError:
        return sandbox.spec


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
