"""What the platform team's SandboxPolicies say to a sandbox: whether it may start as it wants to, and how
long it may stay awake. Pure. docs/decisions/0010-sandbox-policy.md says why it is judged here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import Any, NamedTuple, cast

from sandpod_crds import durations
from sandpod_crds.models import DEFAULT_SLEEP_AFTER, SandboxPolicy, SandboxPolicySpec, SandboxSpec

from .budget import over_budget
from .objects import Json, entries, section
from .quantities import Amount, parse
from .resources.runtime_mount import copier
from .settings import Installation

# So many complaints go into one message, and so much of each thing that others have written.
COMPLAINTS = 5
CHARACTERS = 120


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a judgement depends on besides the sandbox itself."""

    # How many sandboxes of its namespace are older.
    older: int
    # The size that its volume was asked for, if there is one.
    volume: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class Denial:
    message: str
    # The fields of the spec that it is about. Of one that works at once, a change has to wait as well.
    fields: frozenset[str]


class Complaint(NamedTuple):
    field: str
    sentence: str


def judge(
    spec: SandboxSpec,
    *,
    pod: Json | None,
    policies: Sequence[SandboxPolicy],
    standing: Standing | None,
    installation: Installation,
) -> Denial | None:
    """Of the pod that would be made, because a podTemplate can bring anything; None when no pod can be made.
    A pool's pods, which nobody has claimed yet, have no standing.
    """
    found = [
        (policy.metadata.name, complaint)
        for policy in policies
        for complaint in _complaints(
            spec, pod=pod, policy=policy.spec, standing=standing, installation=installation
        )
    ]
    if not found:
        return None
    sentences = [f"SandboxPolicy {name}: {complaint.sentence}." for name, complaint in found[:COMPLAINTS]]
    if len(found) > COMPLAINTS:
        sentences.append(f"And {len(found) - COMPLAINTS} more.")
    return Denial(
        message=" ".join(sentences), fields=frozenset(each.field for _, each in found if each.field)
    )


def idle_limit(spec: SandboxSpec, *, policies: Sequence[SandboxPolicy]) -> float | None:
    """After how many seconds without work it sleeps; None: never. As it wants, as far as it may: this holds
    for a sandbox that runs, when a policy became stricter, and for one that does not say.
    """
    if spec.keep_alive and all(_allows_keep_alive(policy.spec) for policy in policies):
        return None
    wanted = DEFAULT_SLEEP_AFTER if spec.sleep_after is None else spec.sleep_after
    allowed = [policy.spec.max_sleep_after for policy in policies]
    return min([wanted, *(each for each in allowed if each is not None)])


def in_force(policies: Iterable[Json], *, labels: Mapping[str, str]) -> tuple[SandboxPolicy, ...]:
    """Those that hold in a namespace with these labels, by name."""
    here = [each for each in policies if selects(section(each["spec"], "namespaceSelector"), labels=labels)]
    models = (SandboxPolicy.model_validate(each) for each in here)
    return tuple(sorted(models, key=lambda policy: policy.metadata.name))


def selects(selector: Json, *, labels: Mapping[str, str]) -> bool:
    """As Kubernetes reads a label selector; an empty one selects everything."""
    wanted = section(selector, "matchLabels").items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        _holds(each, labels) for each in entries(selector, "matchExpressions")
    )


def _holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], cast("list[str]", requirement.get("values") or [])
    match requirement["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            # A word of a later version: rather hold somewhere too much than let everything pass.
            return True


def _complaints(
    spec: SandboxSpec,
    *,
    pod: Json | None,
    policy: SandboxPolicySpec,
    standing: Standing | None,
    installation: Installation,
) -> Iterator[Complaint]:
    if standing is not None:
        yield from _number(policy, standing)
    if pod is not None:
        yield from _images(pod, policy, installation)
        for sentence in over_budget(pod, most=policy.max_resources or {}, installation=installation):
            yield Complaint("resources", sentence)
        yield from _ephemeral_volumes(pod, policy)
        yield from _runtime_class(pod, policy)
        yield from _priority(pod, policy, installation)
    yield from _volume(spec, policy, standing)
    yield from _wakefulness(spec, policy)
    yield from _isolation(spec, policy)
    yield from _network(spec, policy)


def _number(policy: SandboxPolicySpec, standing: Standing) -> Iterator[Complaint]:
    most = policy.max_sandboxes
    if most is None or standing.older < most:
        return
    oldest = "oldest sandbox" if most == 1 else f"{most} oldest sandboxes"
    # Not how many are older: that would change for all who wait with each that goes.
    sentence = (
        f"only the {oldest} of a namespace may start (maxSandboxes); it is the turn of the next when one "
        "that is older is deleted"
    )
    # None of the spec's fields is to blame.
    yield Complaint("", sentence if most else "no sandbox may start in this namespace (maxSandboxes is 0)")


def _images(pod: Json, policy: SandboxPolicySpec, installation: Installation) -> Iterator[Complaint]:
    if policy.allowed_images is None:
        return
    own = installation.settings.sandbox_image
    for image in sorted(set(_images_of(pod, installation))):
        if image != own and not any(fnmatchcase(image, pattern) for pattern in policy.allowed_images):
            yield Complaint(
                "image",
                f"the image {_short(image)} is none of those that are allowed (allowedImages); choose one "
                f"that is like {_short(', '.join(policy.allowed_images))}",
            )


def _images_of(pod: Json, installation: Installation) -> Iterator[str]:
    """But for the runtime's own, from which it comes into the pod."""
    spec, ours = pod["spec"], copier(installation.settings)
    for container in (*entries(spec, "containers"), *entries(spec, "initContainers")):
        if container != ours:
            # One without an image is not valid, and the API server will say so.
            yield str(container.get("image", ""))
    for volume in entries(spec, "volumes"):
        source = volume.get("image")
        if isinstance(source, dict):
            reference = str(section(volume, "image").get("reference", ""))
            # Nothing is run of it.
            if reference != installation.settings.runtime_image:
                yield reference


def _volume(spec: SandboxSpec, policy: SandboxPolicySpec, standing: Standing | None) -> Iterator[Complaint]:
    size, most = spec.workspace and spec.workspace.size, policy.max_workspace_size
    if size is None or most is None or parse(size) <= parse(most):
        return
    # A volume cannot shrink: one that is there already must not lock its owner out.
    volume = standing.volume if standing is not None else None
    if volume is None or parse(size) > parse(volume):
        yield Complaint(
            "workspace", f"workspace.size is {size} and may be {most} at most (maxWorkspaceSize); lower it"
        )


def _ephemeral_volumes(pod: Json, policy: SandboxPolicySpec) -> Iterator[Complaint]:
    """Those that a podTemplate asks for. Nothing has looked at them yet."""
    most = policy.max_workspace_size
    if most is None:
        return
    for volume in entries(pod["spec"], "volumes"):
        where = f"podTemplate.spec.volumes[{_short(str(volume.get('name')))}]"
        size: Any = volume.get("ephemeral")
        if size is None:
            continue
        for name in ("volumeClaimTemplate", "spec", "resources", "requests", "storage"):
            size = cast("Json", size).get(name) if isinstance(size, dict) else None
        try:
            fits = parse(size) <= parse(most)
        except (ValueError, TypeError):
            yield Complaint("podTemplate", f"{where} has a size that is not to be understood; correct it")
            continue
        if not fits:
            sentence = (
                f"{where} is {_short(str(size))} and may be {most} at most (maxWorkspaceSize); lower it"
            )
            yield Complaint("podTemplate", sentence)


def _wakefulness(spec: SandboxSpec, policy: SandboxPolicySpec) -> Iterator[Complaint]:
    longest = policy.max_sleep_after
    if spec.keep_alive and not _allows_keep_alive(policy):
        yield Complaint("keepAlive", "keepAlive is not allowed (allowKeepAlive); remove it")
    if spec.sleep_after is not None and longest is not None and spec.sleep_after > longest:
        yield Complaint(
            "sleepAfter",
            f"sleepAfter is {durations.format(spec.sleep_after)} and may be {durations.format(longest)} at "
            "most (maxSleepAfter); lower it",
        )


def _allows_keep_alive(policy: SandboxPolicySpec) -> bool:
    if policy.allow_keep_alive is not None:
        return policy.allow_keep_alive
    return policy.max_sleep_after is None


def _isolation(spec: SandboxSpec, policy: SandboxPolicySpec) -> Iterator[Complaint]:
    if policy.require_isolation is not None and spec.isolation != policy.require_isolation:
        yield Complaint(
            "isolation",
            f"isolation is {spec.isolation} and has to be {policy.require_isolation} (requireIsolation); "
            "set it",
        )


def _runtime_class(pod: Json, policy: SandboxPolicySpec) -> Iterator[Complaint]:
    runtime_class = pod["spec"].get("runtimeClassName")
    if policy.allowed_runtime_classes is not None and runtime_class not in policy.allowed_runtime_classes:
        is_now = f"is {_short(str(runtime_class))}" if runtime_class else "is not set"
        yield Complaint(
            "runtimeClassName",
            f"runtimeClassName {is_now} and has to be one of {', '.join(policy.allowed_runtime_classes)} "
            "(allowedRuntimeClasses); set it",
        )


def _priority(pod: Json, policy: SandboxPolicySpec, installation: Installation) -> Iterator[Complaint]:
    found, allowed = pod["spec"].get("priorityClassName"), policy.allowed_priority_classes
    # Without one, it is the cluster's administrators who have chosen.
    if allowed is None or found in (None, "", installation.settings.priority_class_name, *allowed):
        return
    others = f"choose one of {_short(', '.join(allowed))}, or remove it" if allowed else "remove it"
    sentence = f"priorityClassName is {_short(str(found))}, which is not allowed (allowedPriorityClasses)"
    yield Complaint("priorityClassName", f"{sentence}; {others}")


def _network(spec: SandboxSpec, policy: SandboxPolicySpec) -> Iterator[Complaint]:
    egress = spec.network.egress if spec.network is not None else "Internet"
    if policy.allowed_egress is not None and egress not in policy.allowed_egress:
        yield Complaint(
            "network",
            f"network.egress is {egress} and has to be one of {', '.join(policy.allowed_egress)} "
            "(allowedEgress); set it",
        )
    ranges = policy.allowed_destinations
    targets = spec.network.allow if spec.network is not None else ()
    beyond = [target.cidr for target in targets if ranges is not None and not _within(target.cidr, ranges)]
    if ranges is not None and beyond:
        yield Complaint(
            "network",
            f"network.allow has {_short(', '.join(beyond))}, which does not lie in "
            f"{_short(', '.join(ranges))} (allowedDestinations); remove it",
        )


def _within(cidr: str, ranges: Sequence[str]) -> bool:
    inner = ip_network(cidr)
    outer = [ip_network(each) for each in ranges]
    # Sorted out by version first, as the two kinds of address cannot be compared.
    return any(
        int(each.network_address) <= int(inner.network_address)
        and int(inner.broadcast_address) <= int(each.broadcast_address)
        for each in outer
        if each.version == inner.version
    )


def _short(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"
