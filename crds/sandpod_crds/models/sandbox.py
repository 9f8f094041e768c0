"""`Sandbox`: one Linux computer, and what it has in common with the template it may come from."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..markers import Bounds, MapBy, Model
from ..names import API_VERSION, SANDBOX_KIND
from . import sandbox_rules
from .containers import EnvFrom, EnvVar, NodeSelector, ResourceRequirements, Tolerations
from .meta import Metadata
from .network import Network
from .parts import Lifetime, PodTemplate, Ports, Processes, Reference, Setup, Workspace
from .status import SandboxStatus
from .values import YEAR, DnsName, Duration, ImageReference, User

DEFAULT_SLEEP_AFTER = 600.0

_SleepAfter = Annotated[
    float,
    Duration(
        shortest=1,
        longest=YEAR,
        sentence="from 1s to 8760h; for a sandbox that never sleeps by itself write keepAlive: true",
    ),
]


class SandboxFields(Model):
    """What a Sandbox and a SandboxTemplate both have."""

    image: ImageReference | None = None
    """The image that the sandbox runs, such as registry.example.com/tools:1.2; any Linux image will do.
    Default: Sandpod's own image, with bash, git, Python, Node.js and a C compiler."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the node fetches the image: Always, IfNotPresent or Never. Default: as Kubernetes does, Always for
    the tag latest and IfNotPresent otherwise."""
    resources: ResourceRequirements | None = None
    """CPU, memory and disk, as in a pod. Default: what the platform team has set in the chart."""
    env: Annotated[tuple[EnvVar, ...], MapBy("name"), Bounds(longest=256)] = ()
    """Environment variables of every command and process in the sandbox, as in a pod."""
    env_from: EnvFrom = ()
    """Whole Secrets and ConfigMaps as environment variables, as in a pod; env wins over them."""
    runtime_class_name: DnsName | None = None
    """The RuntimeClass of the pod, for a stronger wall around it, such as gvisor or kata."""
    priority_class_name: DnsName | None = None
    """The PriorityClass of the pod: which pods may take its place on a crowded node, and whose place it may
    take. Default: what the platform team has set in the chart, or the cluster's own default."""
    service_account_name: DnsName | None = None
    """The ServiceAccount of the pod. No token of it is mounted; it matters for image pull secrets and
    admission policies."""
    node_selector: NodeSelector = Field(default_factory=dict[str, str])
    """Only nodes with these labels, such as kubernetes.io/arch: amd64."""
    tolerations: Tolerations = ()
    """Which tainted nodes the sandbox may run on, as in a pod."""
    isolation: Literal["Standard", "Strict"] = "Standard"
    """Standard (the default) runs as an ordinary user without any privilege. Strict adds a user namespace,
    and runs commands apart from Sandpod's runtime; only there may user be root."""
    user: User | None = None
    """Who runs the commands: a numeric UID such as 1000 (the default), or the word root with isolation:
    Strict."""
    pod_template: PodTemplate | None = None
    """For what no field here covers: parts of a pod, merged into the sandbox's pod."""
    sleep_after: _SleepAfter | None = None
    """Sleep after this long without work: no command, stream, terminal or preview traffic, and next to no
    CPU. A duration such as 45s, 10m or 1h30m, or whole seconds; at least 1s. Default 10m. A change works at
    once."""
    keep_alive: bool = False
    """Never sleep by itself, whatever sleepAfter says. Default false. A change works at once."""
    workspace: Workspace | None = None
    """A volume at /workspace, whose files and sessions survive sleep. Without it the sandbox has scratch
    space, which is lost when it sleeps. Cannot be removed later."""
    ports: Ports = ()
    """Ports to expose: each gets a preview URL, shown in status.ports. At most 32."""
    processes: Processes = ()
    """Programs to run at every start and wake, such as a dev server, so that a preview URL answers after a
    wake. At most 16."""
    setup: Setup = ()
    """Shell commands to run once per workspace, in order, before the sandbox is Ready; without a workspace,
    at every start. Example: pip install -r requirements.txt."""
    network: Network | None = None
    """Where the sandbox may connect to. Default: the Internet, and nothing inside the cluster."""
    lifetime: Lifetime | None = None
    """When the sandbox is deleted by itself. The clock runs on while Sandpod is down."""


class SandboxSpec(SandboxFields):
    rules: ClassVar = sandbox_rules.SPEC

    template_ref: Reference | None = None
    """The SandboxTemplate to take all fields from that are not set here. A changed template takes effect at
    the next start."""
    pool_ref: Reference | None = None
    """The SandboxPool to take a warm pod from, so that the sandbox is Ready at once. The pool's template
    brings all fields that are not set here. When the pool is empty the sandbox starts cold."""
    paused: bool = False
    """Put the sandbox to sleep now and keep it asleep: requests do not wake it. Set it back to false to go
    on. Default false."""


class Sandbox(Model):
    """A Linux computer for a person or an agent: commands, files, terminals and preview URLs. It sleeps when
    nobody works in it and wakes on the next request.
    """

    rules: ClassVar = sandbox_rules.OBJECT

    api_version: str = API_VERSION
    kind: str = SANDBOX_KIND
    metadata: Metadata
    spec: SandboxSpec = SandboxSpec()
    """What the sandbox should be. Every field is optional; none at all is fine."""
    status: SandboxStatus = SandboxStatus()
    """What the sandbox is right now, written by Sandpod only."""
