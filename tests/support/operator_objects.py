"""Objects as the API server, the scheduler and the kubelet write them, for tests of the operator."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sandpod_crds.models import Sandbox, SandboxSpec
from sandpod_crds.names import ANNOTATION_WAKE, SANDBOX_CONTAINER, ConditionType, child_labels
from sandpod_operator.case import Case
from sandpod_operator.claims import claim_facts
from sandpod_operator.conditions import Verdict, honored
from sandpod_operator.decide import decide
from sandpod_operator.effective import Source
from sandpod_operator.exposure import preview_verdict
from sandpod_operator.fence import wanted_policy
from sandpod_operator.isolation import Enforcement, isolation_of_pod, isolation_verdict
from sandpod_operator.objects import Json, owner_reference, owner_uid, section
from sandpod_operator.observations import Answer, Errand, Key, Outcome, Refusal
from sandpod_operator.pod_ends import ASLEEP, TERMINATED
from sandpod_operator.pods import facts
from sandpod_operator.reasons import Names, Reason, sentence
from sandpod_operator.resources.pod import spec_hash
from sandpod_operator.settings import Installation, RuntimeMount, Settings
from sandpod_operator.situation import Situation
from sandpod_operator.workspace_condition import workspace_verdict

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
KEY = Key("team", "box")
NAMES = Names(namespace=KEY.namespace, sandbox=KEY.name, pod=KEY.name)
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
    said = Verdict(ConditionType.READY, ready, Reason(reason), sentence(Reason(reason), names=NAMES))
    others = {ConditionType.SPEC_HONORED: honored(SandboxSpec(), overridden=(), restart_pending=None)}
    others[ConditionType.PREVIEW_READY] = preview_verdict(case_of(sandbox()), before=None)
    given = isolation_of_pod(SandboxSpec(), isolation=None)
    others[ConditionType.ISOLATED] = isolation_verdict(given, enforcement=Enforcement.UNKNOWN, said=None)
    others[ConditionType.WORKSPACE_READY] = workspace_verdict(case_of(sandbox()), before=None)
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


def case_of(obj: Json, *, template: Json | None = None, within: Installation = INSTALLATION) -> Case:
    model = Sandbox.model_validate(obj)
    source = Source(own=section(obj, "spec"), template=template)
    given = Situation(key=KEY, sandbox=model, source=source)
    return Case(given, model, now=NOW, installation=within)


def starting(**fields: Any) -> Json:
    held = {"podName": KEY.name, "podUID": POD_UID, "image": IMAGE, "specHash": spec_hash(SandboxSpec())}
    return status_of("Starting", "Starting", ready=False, **{**held, **fields})


def running(**fields: Any) -> Json:
    """Since 90 seconds, unless `startedAt` says otherwise."""
    held = {
        "podIP": "10.1.0.7",
        "runtimeVersion": "0.1.0",
        "startedAt": at(-90),
        "sleepAfter": "10m",
        **fields,
    }
    return {**starting(**held), "phase": "Running", "conditions": conditions_of("RuntimeAnswers", ready=True)}


def written(given: Situation, *, ago: float = 0, within: Installation = INSTALLATION) -> Json:
    """The status that a decision wrote so many seconds ago."""
    status = decide(given, now=NOW - timedelta(seconds=ago), installation=within).status
    assert status is not None
    return status.to_json()


def asleep(reason: str = "Idle", *, since: float = -50, **fields: Any) -> Json:
    held: Json = {"sleepReason": reason, "asleepSince": at(since), "lastActiveAt": at(-600), **fields}
    return status_of("Asleep", reason, **held)


def wanted_awake(request: str = "2026-11-18T12:00:00Z", **metadata: Any) -> Json:
    """What the metadata of a sandbox say that somebody wants awake."""
    return {"annotations": {ANNOTATION_WAKE: request}, **metadata}


def pod(
    spec: Json | None = None, status: Json | None = None, *, template: Json | None = None, **metadata: Any
) -> Json:
    """The pod that the operator makes from this spec, and this template."""
    made = case_of(sandbox(spec), template=template).wanted_pod
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


def ended_asleep(reason: str = "idle", **words: Any) -> Json:
    """The runtime has saved what there was, said why, and exited."""
    said: Json = {
        "reason": reason,
        "saved": True,
        "lastActiveAt": at(-600),
        "endedAt": at(0),
        "sessions": [],
        **words,
    }
    code = TERMINATED if reason == "terminated" else ASLEEP
    return ended(code, reason="Error" if code else "Completed", message=json.dumps(said))


def bound(**fields: Any) -> Answer:
    given: dict[str, Any] = {"version": "0.1.0", "spec_hash": "", "subject": "10m", **fields}
    return answer(Errand.BIND, **given)


def refused_bind(message: str = "it was made with another key of the installation.") -> Answer:
    return answer(Errand.BIND, outcome=Outcome.REFUSED, message=message)


def answer(errand: Errand, *, outcome: Outcome = Outcome.DONE, ago: float = 0, **fields: Any) -> Answer:
    given = NOW - timedelta(seconds=ago)
    return Answer(pod_uid=POD_UID, errand=errand, outcome=outcome, at=given, **fields)


def claim(*, size: str = "1Gi", phase: str = "Bound", owner: str | None = UID, **metadata: Any) -> Json:
    """The workspace's claim, as the operator makes it and Kubernetes binds it."""
    owners = [owner_reference(kind="Sandbox", name=KEY.name, uid=owner)] if owner is not None else []
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"{KEY.name}-workspace",
            "namespace": KEY.namespace,
            "uid": "c1a10001-0000-4000-8000-000000000001",
            "resourceVersion": "30",
            "creationTimestamp": at(-100),
            "labels": child_labels(sandbox_name=KEY.name, sandbox_uid=UID, version="0.1.0"),
            "ownerReferences": owners,
            **metadata,
        },
        "spec": {"resources": {"requests": {"storage": size}}},
        "status": {"phase": phase, "capacity": {"storage": size} if phase == "Bound" else {}},
    }


def situation(
    sandbox: Json | None,
    pod: Json | None = None,
    *,
    answers: tuple[Answer, ...] = (),
    answer: Answer | None = None,
    refusal: Refusal | None = None,
    refused: str = "pods",
    departed: str | None = None,
    claims: tuple[Json, ...] = (),
    surplus: tuple[Json, ...] = (),
    template: Json | None = None,
    missing: str | None = None,
    fenced: bool = True,
    asked: float | None = None,
    ingresses: tuple[Json, ...] = (),
) -> Situation:
    """With its NetworkPolicy there, unless `fenced` says otherwise. `asked` is since when the pod's runtime
    is, in seconds from now.
    """
    model = Sandbox.model_validate(sandbox) if sandbox is not None else None
    uid = model.metadata.uid if model is not None else departed
    ours = pod is not None and owner_uid(pod) == uid
    given = (*answers, answer) if answer is not None else answers
    source = Source(own=section(sandbox or {}, "spec"), template=template, missing=missing)
    found = Situation(
        key=KEY,
        sandbox=model,
        source=source,
        departed=departed,
        pod=facts(pod) if pod is not None and ours else None,
        namesake=facts(pod) if pod is not None and not ours else None,
        surplus=tuple(facts(each) for each in surplus),
        claims={each["metadata"]["name"]: claim_facts(each) for each in claims},
        answers={each.errand: each for each in given},
        refusals={refused: refusal} if refusal is not None else {},
        ingresses=ingresses,
        asked_for=timedelta(seconds=-asked) if asked is not None else None,
    )
    if model is None or not fenced:
        return found
    case = Case(found, model, now=NOW, installation=INSTALLATION)
    policy = wanted_policy(case)
    there: Json = {**policy, "metadata": {**policy["metadata"], "uid": "wall"}}
    return replace(found, network_policy=there)


def stranger(**metadata: Any) -> Json:
    """A pod of our name and with our labels that is not ours."""
    labels = child_labels(sandbox_name=KEY.name, sandbox_uid=UID, version="0.1.0")
    return pod(None, up(), labels=labels, **Json(ownerReferences=[]) | metadata)
