"""SandboxPolicies and what they judge."""

from typing import Any

from sandpod_crds.models import SandboxPolicy, SandboxSpec
from sandpod_operator.objects import Json
from sandpod_operator.policy import Denial, Standing, judge
from sandpod_operator.settings import Installation, RuntimeMount, Settings

INSTALLATION = Installation(
    settings=Settings(
        sandbox_image="sandpod/sandbox:1", runtime_image="sandpod/runtime:1", priority_class_name="sandboxes"
    ),
    version="1",
    key=b"k" * 32,
    runtime_mount=RuntimeMount.INIT_CONTAINER,
)

LIMITS = {"cpu": 2, "memory": "2Gi", "ephemeral-storage": "4Gi"}


def policy(name: str = "students", **spec: Any) -> SandboxPolicy:
    return SandboxPolicy.model_validate({"metadata": {"name": name}, "spec": spec})


def pod(*containers: Json, **spec: Any) -> Json:
    sandbox: Json = {"name": "sandbox", "image": "sandpod/sandbox:1", "resources": {"limits": LIMITS}}
    return {"spec": {"containers": [*(containers or [sandbox])], **spec}}


def container(
    name: str = "sandbox", *, image: str = "sandpod/sandbox:1", cpu: Any = 2, limits: Json | None = None
) -> Json:
    return {
        "name": name,
        "image": image,
        "resources": {"limits": {**LIMITS, "cpu": cpu, **(limits or {})}},
    }


def judged(
    *policies: SandboxPolicy,
    spec: Json | None = None,
    made: Json | None = None,
    standing: Standing | None = None,
) -> Denial | None:
    return judge(
        SandboxSpec.model_validate(spec or {}),
        pod=made or pod(),
        policies=policies,
        standing=standing,
        installation=INSTALLATION,
    )
