"""What a Sandbox takes over from Kubernetes' containers and pods, in Kubernetes' own words: environment,
resources, tolerations.
"""

from typing import Annotated, ClassVar, Literal

from ..markers import Atomic, Bounds, Model, Rule
from .values import ConfigKey, DnsName, EnvName, Quantity, Text


class KeySelector(Model):
    name: DnsName
    """Name of the object, in the sandbox's namespace."""
    key: ConfigKey
    """Which of its entries to take."""
    optional: bool = False
    """Start even when the object or the entry does not exist. Default false."""


class FieldSelector(Model):
    api_version: Annotated[str, Bounds(longest=32)] = "v1"
    """Version of the API that fieldPath is written in. Default v1."""
    field_path: Annotated[str, Bounds(longest=512, shortest=1)]
    """Which field of the pod to take, such as metadata.name or status.podIP."""


class ResourceSelector(Model):
    container_name: Annotated[str, Bounds(longest=63)] | None = None
    """Which container's resources. Default: the sandbox's own container."""
    resource: Annotated[str, Bounds(longest=253, shortest=1)]
    """Which resource, such as limits.cpu or requests.memory."""
    divisor: Quantity | None = None
    """The unit to count in, such as 1m for thousandths of a CPU or 1Mi for mebibytes. Default 1."""


class EnvVarSource(Model):
    rules: ClassVar = (
        Rule(
            """[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef),
            has(self.resourceFieldRef)].filter(given, given).size() == 1""",
            "set exactly one of secretKeyRef, configMapKeyRef, fieldRef and resourceFieldRef",
        ),
    )

    secret_key_ref: KeySelector | None = None
    """An entry of a Secret."""
    config_map_key_ref: KeySelector | None = None
    """An entry of a ConfigMap."""
    field_ref: FieldSelector | None = None
    """A field of the sandbox's pod."""
    resource_field_ref: ResourceSelector | None = None
    """A resource limit or request of the sandbox's container."""


class EnvValue(Model):
    name: EnvName
    """Name of the variable, such as LOG_LEVEL."""
    value: Text = ""
    """The value, as text: put numbers and true/false into quotes. Default: empty."""


class EnvVar(Model):
    rules: ClassVar = (
        Rule(
            "!(has(self.value) && has(self.valueFrom))",
            "a variable has a value or a valueFrom, not both; remove one",
        ),
    )

    name: EnvName
    """Name of the variable, such as LOG_LEVEL."""
    value: Text | None = None
    """The value, as text: put numbers and true/false into quotes. Default: empty."""
    value_from: EnvVarSource | None = None
    """Take the value from a Secret, a ConfigMap or the pod, each time the sandbox starts."""


class ObjectSelector(Model):
    name: DnsName
    """Name of the object, in the sandbox's namespace."""
    optional: bool = False
    """Start even when the object does not exist. Default false."""


class EnvFromSource(Model):
    rules: ClassVar = (
        Rule(
            "has(self.configMapRef) != has(self.secretRef)",
            "set exactly one of configMapRef and secretRef",
        ),
    )

    prefix: Annotated[str, Bounds(longest=253)] | None = None
    """Put in front of each entry's name, such as DB_."""
    config_map_ref: ObjectSelector | None = None
    """All entries of this ConfigMap."""
    secret_ref: ObjectSelector | None = None
    """All entries of this Secret."""


Amounts = Annotated[
    dict[str, Quantity],
    Bounds(longest=16),
    Rule(
        """self.all(k, k == 'cpu' || k == 'memory' || k == 'ephemeral-storage' || k.startsWith('hugepages-')
        || k.contains('/'))""",
        "the resources are cpu, memory, ephemeral-storage, hugepages-SIZE, and devices with their domain, "
        "such as nvidia.com/gpu",
    ),
]


class ResourceRequirements(Model):
    rules: ClassVar = (
        Rule(
            """!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits)
            || !isQuantity(string(self.requests[k])) || !isQuantity(string(self.limits[k]))
            || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)""",
            "a request cannot be larger than the limit of the same resource; raise the limit or lower the "
            "request",
        ),
        Rule(
            """!has(self.limits) || !('memory' in self.limits) || !isQuantity(string(self.limits['memory']))
            || quantity(string(self.limits['memory'])).compareTo(quantity('16Mi')) >= 0""",
            "limits.memory is less than 16Mi, with which nothing starts; write 512Mi or 2Gi (a plain number "
            "means bytes, and a small m thousandths of a byte)",
        ),
    )

    limits: Amounts | None = None
    """The most that the sandbox can use: cpu (2, 500m, "0.5"), memory (512Mi, 4Gi), ephemeral-storage (10Gi,
    its files outside the workspace). Beyond its memory the sandbox is killed and started again."""
    requests: Amounts | None = None
    """What the scheduler sets aside for it on a node. Default: the limits."""


class Toleration(Model):
    rules: ClassVar = (
        Rule(
            "!(has(self.operator) && self.operator == 'Exists' && has(self.value) && self.value != '')",
            "operator Exists looks at no value; remove value, or use operator Equal",
        ),
        Rule(
            "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
            "a toleration without a key tolerates every taint, and must say so with operator: Exists",
        ),
        Rule(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "tolerationSeconds works with effect: NoExecute only; add that, or remove tolerationSeconds",
        ),
    )

    key: Annotated[str, Bounds(longest=317)] | None = None
    """Key of the taint, such as gpu or example.com/sandboxes. Empty: every taint."""
    operator: Literal["Equal", "Exists"] | None = None
    """Equal (the default) compares value, Exists takes any."""
    value: Annotated[str, Bounds(longest=63)] | None = None
    """Value of the taint, for Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Empty: all of them."""
    toleration_seconds: int | None = None
    """With NoExecute: how many seconds the sandbox stays on a node tainted so. Empty: for ever."""


EnvFrom = Annotated[tuple[EnvFromSource, ...], Atomic(), Bounds(longest=32)]
Tolerations = Annotated[tuple[Toleration, ...], Atomic(), Bounds(longest=32)]
NodeSelector = Annotated[dict[str, Annotated[str, Bounds(longest=63)]], Atomic(), Bounds(longest=32)]
