"""How much of a node a pod may use, held against the most that it may. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, cast

from .objects import Json, entries
from .quantities import Amount, in_words, parse
from .resources.runtime_mount import copier
from .settings import Installation

# Without a limit a container takes of these what it likes; of all else, none.
_UNLIMITED = ("cpu", "memory", "ephemeral-storage")
_BYTES = ("memory", "ephemeral-storage")


def over_budget(pod: Json, *, most: Mapping[str, Amount], installation: Installation) -> Iterator[str]:
    """What is too much, in sentences. Nothing has looked at a podTemplate's containers yet: what is not to be
    understood is too much.
    """
    containers = entries(pod["spec"], "containers")
    ours = copier(installation.settings)
    initial = [each for each in entries(pod["spec"], "initContainers") if each != ours]
    for name, allowed in most.items():
        here = f"{name} may be {allowed} at most (maxResources)"
        without = [each["name"] for each in (*containers, *initial) if _limit(each, name) is None]
        if without and name in _UNLIMITED:
            yield f"{here}, and the container {without[0]} has no limit of it; set resources.limits.{name}"
            continue
        try:
            amount = _peak(containers, initial, name)
        except ValueError:
            yield f"{here}, and a container's limit is not to be understood; correct podTemplate"
            continue
        if amount > parse(allowed):
            limits = "the limits of the pod's containers add up to" if len(containers) > 1 else "the limit is"
            found = in_words(amount, binary=name in _BYTES)
            yield f"{here}, and {limits} {found}; lower resources.limits.{name}"


def _peak(containers: Iterable[Json], initial: Iterable[Json], name: str) -> Decimal:
    """Init containers run one after the other before the containers; those that stay run beside all that come
    later.
    """
    staying, peak = Decimal(0), Decimal(0)
    for container in initial:
        amount = parse(_limit(container, name) or 0)
        peak = max(peak, staying + amount)
        if container.get("restartPolicy") == "Always":
            staying += amount
    return max(peak, staying + sum(parse(_limit(each, name) or 0) for each in containers))


def _limit(container: Json, name: str) -> Any:
    limits = _object(_object(container.get("resources")).get("limits"))
    return limits.get(name)


def _object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
