"""The parts of a sandbox that Kubernetes has no words for: workspace, ports, processes, lifetime, and the
escape hatch to the pod.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..markers import Atomic, Bounds, MapBy, Model, Rule
from .containers import EnvValue
from .values import YEAR, AbsolutePath, DnsName, Duration, Label, ListenPort, Object, VolumeSize


class Reference(Model):
    name: DnsName
    """Name of the object, in the same namespace."""


class Workspace(Model):
    rules: ClassVar = (
        Rule(
            "!has(self.claimName) || !(has(self.size) || has(self.storageClassName) || has(self.reclaim))",
            "claimName takes a claim that exists, with its own size and class, and never deletes it; remove "
            "size, storageClassName and reclaim, or remove claimName",
        ),
    )

    size: VolumeSize | None = None
    """Size of the volume, such as 10Gi. Raising it grows the volume where the storage class can do that; it
    never shrinks. Needed unless claimName is set."""
    storage_class_name: DnsName | None = None
    """The StorageClass of the volume. Default: the cluster's default class. Fixed once set."""
    reclaim: Literal["Delete", "Retain"] = "Delete"
    """What becomes of the volume when the sandbox is deleted: Delete (the default), or Retain, and then a new
    sandbox of the same name takes it up again."""
    claim_name: DnsName | None = None
    """Use this existing PersistentVolumeClaim of the namespace instead of making one. It is never deleted
    with the sandbox. Fixed once set."""


class Port(Model):
    rules: ClassVar = (
        Rule(
            """(has(self.tokenVersion) ? self.tokenVersion : 1)
            >= (has(oldSelf.tokenVersion) ? oldSelf.tokenVersion : 1)""",
            "tokenVersion can only be raised; lowering it would bring revoked URLs back to life",
        ),
    )

    port: ListenPort
    """The port that the program in the sandbox listens on, from 1024 to 65535, not 3000. Example: 8080."""
    name: Label | None = None
    """A name to show beside the URL, such as web. Each port needs another."""
    access: Literal["Token", "Private"] = "Token"
    """Who may open the URL. Token (the default): whoever has it, as the host name holds a secret token.
    Private: only who also shows a Kubernetes bearer token, or a login, that RBAC allows."""
    token_version: Annotated[
        int,
        Rule(
            "self >= 1 && self <= 2147483647",
            "write a whole number from 1; raise it by one to make the old URL worthless",
        ),
    ] = 1
    """Raise it by one to get a new URL and make the old one worthless at once. Default 1."""


Ports = Annotated[
    tuple[Port, ...],
    MapBy("port"),
    Bounds(longest=32),
    Rule(
        "self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",
        "each port needs a name of its own, and two have the same",
    ),
]

Command = Annotated[
    str,
    Bounds(longest=8192),
    Rule("self.trim() != ''", "write the shell command to run, such as npm run dev"),
]


class Process(Model):
    name: Label
    """Name of the process, such as dev-server. Each process needs another."""
    command: Command
    """What to run, as one line for the shell (text, not a list). Example: npm run dev -- --port 8080."""
    cwd: AbsolutePath | None = None
    """The directory to start in, as an absolute path. Default /workspace."""
    env: Annotated[tuple[EnvValue, ...], MapBy("name"), Bounds(longest=64)] = ()
    """Variables for this process, added to the sandbox's own."""
    restart: Literal["Always", "OnFailure", "Never"] = "Always"
    """When the process ends by itself: Always (the default) starts it again, OnFailure only after an exit
    code other than 0, Never leaves it. Repeated failures wait longer and longer."""
    port: ListenPort | None = None
    """The port that it listens on. The process counts as ready once somebody listens there, and after a wake
    a request to the port's URL waits for that."""


Processes = Annotated[tuple[Process, ...], MapBy("name"), Bounds(longest=16)]
Setup = Annotated[tuple[Command, ...], Atomic(), Bounds(longest=32)]


_Lifetime = Annotated[
    float, Duration(shortest=1, longest=10 * YEAR, sentence="from 1s to 87600h (ten years)")
]


class Lifetime(Model):
    max_age: _Lifetime | None = None
    """Delete the sandbox this long after its creation, whether it works or not. A duration such as 8h, or
    whole seconds. Default: never."""
    delete_after_asleep: _Lifetime | None = None
    """Delete the sandbox when it has been asleep for this long. A duration such as 168h (a week), or whole
    seconds. Default: never."""


class PodTemplateMetadata(Model):
    labels: Annotated[
        dict[str, Annotated[str, Bounds(longest=63)]],
        Bounds(longest=64),
        Rule(
            """self.all(k, !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/component',
            'app.kubernetes.io/managed-by', 'app.kubernetes.io/instance', 'app.kubernetes.io/version'])
            && !k.startsWith('sandpod.dev/'))""",
            "Sandpod sets the labels app.kubernetes.io/name, component, managed-by, instance, version and "
            "all of sandpod.dev/ itself; choose other keys",
        ),
    ] = Field(default_factory=dict[str, str])
    """Labels to add to the pod, such as team: red."""
    annotations: Annotated[
        dict[str, str],
        Bounds(longest=256),
        Rule(
            "self.all(k, !k.startsWith('sandpod.dev/'))",
            "Sandpod sets all annotations of sandpod.dev/ itself; choose other keys",
        ),
    ] = Field(default_factory=dict[str, str])
    """Annotations to add to the pod."""


class PodTemplate(Model):
    metadata: PodTemplateMetadata | None = None
    """Labels and annotations for the pod."""
    spec: Object | None = None
    """Any fields of a pod's spec (kubectl explain pod.spec), merged into the sandbox's pod as kubectl patch
    would: lists of named things by name. The sandbox's container is named sandbox. What the cluster refuses
    shows in the condition Ready."""
