"""The resources as pydantic models: read what the API server sent with `Sandbox.model_validate(object)`."""

from .containers import EnvFromSource, EnvVar, ResourceRequirements, Toleration
from .meta import Condition, Metadata
from .network import Network
from .parts import Lifetime, PodTemplate, Port, Process, Reference, Workspace
from .policy import LabelSelector, SandboxPolicy, SandboxPolicySpec
from .pool import SandboxPool, SandboxPoolSpec, SandboxPoolStatus
from .sandbox import DEFAULT_SLEEP_AFTER, Sandbox, SandboxFields, SandboxSpec
from .status import PortStatus, SandboxStatus, SessionStatus, SetupStatus
from .template import SandboxTemplate, SandboxTemplateSpec

__all__ = [
    "DEFAULT_SLEEP_AFTER",
    "Condition",
    "EnvFromSource",
    "EnvVar",
    "LabelSelector",
    "Lifetime",
    "Metadata",
    "Network",
    "PodTemplate",
    "Port",
    "PortStatus",
    "Process",
    "Reference",
    "ResourceRequirements",
    "Sandbox",
    "SandboxFields",
    "SandboxPolicy",
    "SandboxPolicySpec",
    "SandboxPool",
    "SandboxPoolSpec",
    "SandboxPoolStatus",
    "SandboxSpec",
    "SandboxStatus",
    "SandboxTemplate",
    "SandboxTemplateSpec",
    "SessionStatus",
    "SetupStatus",
    "Toleration",
    "Workspace",
]
