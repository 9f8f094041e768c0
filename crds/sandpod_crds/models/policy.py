"""`SandboxPolicy`: what a platform team lets the sandboxes of some namespaces have."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..markers import Atomic, Bounds, Model, Rule
from ..names import API_VERSION, POLICY_KIND
from .containers import Amounts
from .meta import Metadata
from .network import Cidr
from .values import YEAR, DnsName, Duration, VolumeSize

_LabelKey = Annotated[str, Bounds(longest=317, shortest=1)]
_LabelValue = Annotated[str, Bounds(longest=63)]

_ImagePattern = Annotated[
    str,
    Bounds(longest=512),
    Rule(
        "self != '' && !self.matches('[[:space:]]') && !self.contains('://')",
        "write a pattern of image names without spaces and without https://, such as registry.example.com/* "
        "(* stands for any characters, also for /)",
    ),
]

_MaxSleepAfter = Annotated[
    float, Duration(shortest=1, longest=YEAR, sentence="from 1s to 8760h; leave it out for no limit")
]


class SelectorRequirement(Model):
    rules: ClassVar = (
        Rule(
            """self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0
            : !has(self.values) || self.values.size() == 0""",
            "In and NotIn need values, Exists and DoesNotExist have none; add or remove values",
        ),
    )

    key: _LabelKey
    """Key of the label, such as team."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """In, NotIn, Exists or DoesNotExist. NotIn also takes namespaces without the label."""
    values: Annotated[tuple[_LabelValue, ...], Atomic(), Bounds(longest=64)] = ()
    """The label's values, for In and NotIn."""


class LabelSelector(Model):
    match_labels: Annotated[dict[str, _LabelValue], Bounds(longest=32)] = Field(
        default_factory=dict[str, str]
    )
    """Labels that a namespace has to have, all of them."""
    match_expressions: Annotated[tuple[SelectorRequirement, ...], Atomic(), Bounds(longest=16)] = ()
    """What else has to hold for its labels, all of it."""


class SandboxPolicySpec(Model):
    namespace_selector: Annotated[LabelSelector, Atomic()] | None = None
    """Which namespaces it holds in, by their labels; every namespace has kubernetes.io/metadata.name.
    Default: all of them."""
    max_sandboxes: (
        Annotated[int, Rule("self >= 0 && self <= 100000", "write a whole number from 0 to 100000")] | None
    ) = None
    """The most sandboxes in each namespace, asleep or not. The oldest ones may start; younger ones wait until
    one of these is deleted. Default: no limit."""
    max_warm_pods: (
        Annotated[int, Rule("self >= 0 && self <= 100000", "write a whole number from 0 to 100000")] | None
    ) = None
    """The most warm pods that all SandboxPools of a namespace keep together. The oldest pools get theirs
    first; a pool that cannot keep all of its replicas says so. Default: no limit."""
    max_resources: Amounts | None = None
    """The highest limits of one sandbox: cpu (4), memory (8Gi), ephemeral-storage (20Gi), or a device such as
    nvidia.com/gpu (0). All containers of its pod count together. Default: no limit."""
    max_workspace_size: VolumeSize | None = None
    """The largest workspace.size of one sandbox, such as 50Gi. Claims that exist already and are named in
    claimName are not judged. Default: no limit."""
    allowed_images: Annotated[tuple[_ImagePattern, ...], Atomic(), Bounds(longest=64, shortest=1)] | None = (
        None
    )
    """Patterns of the images that a sandbox may run, such as registry.example.com/team/*, in each container
    of its pod; one has to fit. Sandpod's own images are always allowed. Default: any image."""
    max_sleep_after: _MaxSleepAfter | None = None
    """The longest sleepAfter, as a duration such as 1h, or whole seconds. Sandboxes that do not say when they
    sleep are held to it. Default: no limit."""
    allow_keep_alive: bool | None = None
    """Whether keepAlive: true is allowed. Default: false where maxSleepAfter is set, and else true."""
    require_isolation: Literal["Strict"] | None = None
    """Strict: every sandbox needs isolation: Strict. Default: either will do."""
    allowed_runtime_classes: (
        Annotated[tuple[DnsName, ...], Atomic(), Bounds(longest=16, shortest=1)] | None
    ) = None
    """The values of runtimeClassName that are allowed, such as gvisor; a sandbox has to name one of them.
    Default: any, and none."""
    allowed_priority_classes: Annotated[tuple[DnsName, ...], Atomic(), Bounds(longest=16)] | None = None
    """The values of priorityClassName that are allowed; an empty list allows none. A sandbox that names none,
    and gets the chart's or the cluster's default, is always allowed. Default: any."""
    allowed_egress: (
        Annotated[
            tuple[Literal["None", "Internet", "Restricted"], ...], Atomic(), Bounds(longest=3, shortest=1)
        ]
        | None
    ) = None
    """The values of network.egress that are allowed. A sandbox that does not say counts as Internet. Default:
    all of them."""
    allowed_destinations: Annotated[tuple[Cidr, ...], Atomic(), Bounds(longest=64, shortest=1)] | None = None
    """Ranges of addresses, such as 203.0.113.0/24: everything in network.allow has to lie in one of them.
    Default: anywhere."""


class SandboxPolicy(Model):
    """What the sandboxes of some namespaces may have, for the team that runs the cluster. It is judged when a
    sandbox starts or wakes; a sandbox that runs goes on. Where several policies hold, all of them do.
    """

    api_version: str = API_VERSION
    kind: str = POLICY_KIND
    metadata: Metadata
    spec: SandboxPolicySpec
    """Where the policy holds, and what it allows."""
