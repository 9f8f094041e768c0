"""Objects as the API server, the scheduler and the kubelet write them, for tests of the operator."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sandpod_crds.models import Sandbox, SandboxSpec
from sandpod_crds.names import SANDBOX_CONTAINER, ConditionType, child_labels
from sandpod_operator.case import Situation
from sandpod_operator.conditions import Verdict, verdicts
from sandpod_operator.objects import Json, section
from sandpod_operator.observations import Answer, Answered, Key, Refusal
from sandpod_operator.pods import facts
from sandpod_operator.reasons import Reason, sentence
from sandpod_operator.resources.pod import build_pod, spec_hash
from sandpod_operator.settings import Installation, RuntimeMount, Settings

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
KEY = Key("team", "box")
UID = "5a0d0001-0000-4000-8000-000000000001"
POD_UID = "90d00001-0000-4000-8000-000000000001"
IMAGE = "sandpod/sandbox:0.1.0"


def installation(**settings: Any) -> Installation:
    given = {"sandboxImage": IMAGE, "runtimeImage": "sandpod/runtime:0.1.0", **settings}
    return Installation(
        settings=Settings.model_validate(given),
        version="0.1.0",
        key=b"k" * 32,
        runtime_mount=RuntimeMount.IMAGE_VOLUME,
    )


INSTALLATION = installation()


def at(seconds: float) -> str:
    """So many seconds from now, as Kubernetes writes it."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def sandbox(
    spec: Json | None = None, status: Json | None = None, *, generation: int = 1, **metadata: Any
) -> Json:
    return {
        "metadata": {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": UID,
            "generation": generation,
            "resourceVersion": "10",
            "creationTimestamp": at(-100),
            **metadata,
        },
        "spec": spec or {},
        "status": status or {},
    }


def status_of(phase: str, reason: str, *, ready: bool = False, **fields: Any) -> Json:
    """What an earlier decision about a sandbox with an empty spec has written."""
    conditions = conditions_of(reason, ready=ready)
    return {"phase": phase, "conditions": conditions, "observedGeneration": 1, **fields}


def conditions_of(reason: str, *, ready: bool) -> list[Json]:
    said = Verdict(ConditionType.READY, ready, Reason(reason), sentence(Reason(reason), pod=KEY.name))
    others = {v.type: v for v in verdicts(SandboxSpec(), overridden=(), restart_pending=None)}
    return [
        {
            "type": verdict.type.value,
            "status": "True" if verdict.holds else "False",
            "reason": verdict.reason.value,
            "message": verdict.message,
            "lastTransitionTime": at(-90),
            "observedGeneration": 1,
        }
        for verdict in (({ConditionType.READY: said} | others)[kind] for kind in ConditionType)
    ]


def starting(**fields: Any) -> Json:
    held = {"podName": KEY.name, "podUID": POD_UID, "image": IMAGE, "specHash": spec_hash(SandboxSpec())}
    return status_of("Starting", "Starting", ready=False, **{**held, **fields})


def running(**fields: Any) -> Json:
    """Since 90 seconds, unless `startedAt` says otherwise."""
    held = {"podIP": "10.1.0.7", "runtimeVersion": "0.1.0", "startedAt": at(-90), **fields}
    return {**starting(**held), "phase": "Running", "conditions": conditions_of("RuntimeAnswers", ready=True)}


def pod(spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    """The pod that the operator makes from this spec."""
    made = build_pod(Sandbox.model_validate(sandbox(spec)), installation=INSTALLATION)
    made["metadata"] |= {"uid": POD_UID, "resourceVersion": "20", "creationTimestamp": at(-5), **metadata}
    made["status"] = {"phase": "Pending", **(status or {})}
    return made


def on_node(**status: Any) -> Json:
    conditions = [{"type": "PodScheduled", "status": "True"}]
    return {"phase": "Pending", "conditions": conditions, **status}


def waiting(reason: str, message: str = "", *, image: str = IMAGE) -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    return on_node(containerStatuses=[{"name": SANDBOX_CONTAINER, "image": image, "state": state}])


def up(*, since: float = -3, ip: str | None = "10.1.0.7", ready: str = "True", reason: str = "") -> Json:
    """The container runs; whether the runtime answers, Kubernetes does not know."""
    state = {"running": {"startedAt": at(since)}}
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "ContainersReady", "status": "True"},
        {"type": "Ready", "status": ready, "reason": reason},
    ]
    containers = [{"name": SANDBOX_CONTAINER, "image": IMAGE, "state": state}]
    return {"phase": "Running", "podIP": ip, "conditions": conditions, "containerStatuses": containers}


def ended(code: int, *, reason: str = "Error", message: str = "") -> Json:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    containers = [{"name": SANDBOX_CONTAINER, "image": IMAGE, "state": state}]
    return {"phase": "Failed" if code else "Succeeded", "podIP": "10.1.0.7", "containerStatuses": containers}


def bound(**fields: Any) -> Answer:
    given = {"version": "0.1.0", "spec_hash": "", **fields}
    return Answer(pod_uid=POD_UID, outcome=Answered.BOUND, at=NOW, **given)


def refused_bind(message: str = "it was made with another key of the installation.") -> Answer:
    return Answer(pod_uid=POD_UID, outcome=Answered.REFUSED, at=NOW, message=message)


def situation(
    sandbox: Json | None,
    pod: Json | None = None,
    *,
    answer: Answer | None = None,
    refusal: Refusal | None = None,
    departed: str | None = None,
) -> Situation:
    finalizers: list[str] = section(sandbox or {}, "metadata").get("finalizers") or []
    return Situation(
        key=KEY,
        sandbox=Sandbox.model_validate(sandbox) if sandbox is not None else None,
        orphaning="orphan" in finalizers,
        departed=departed,
        pod=facts(pod) if pod is not None else None,
        answer=answer,
        refusal=refusal,
    )


def stranger(**metadata: Any) -> Json:
    """A pod of our name and with our labels that is not ours."""
    labels = child_labels(sandbox_name=KEY.name, sandbox_uid=UID, version="0.1.0")
    return pod(None, up(), labels=labels, **Json(ownerReferences=[]) | metadata)
