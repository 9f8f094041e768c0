"""Whose a PersistentVolumeClaim is that a sandbox wants to use: left by an earlier one of its name, or still
another's; and who may still be in it.
"""

from sandpod_crds.models import Sandbox
from sandpod_crds.names import API_VERSION, LABEL_INSTANCE

from .objects import Json, controller, is_left_by_a_pool, owner_uid, section, uid_of
from .observations import Errand, Key, Outcome
from .pods import ANNOTATION_POOL, PodFacts, facts
from .resources.claim import workspace_name
from .store import Store


def kept_claim(store: Store, sandbox: Sandbox) -> str | None:
    """What an earlier sandbox of this name has left, or has become this one's, and the status does not say so
    yet. It may have another's name: a warm pod's.
    """
    metadata = sandbox.metadata
    left = store.claims.left_for(namespace=metadata.namespace, sandbox=metadata.name)
    ours = store.claims.owned_by(namespace=metadata.namespace, uid=metadata.uid)
    there = [each["metadata"] for each in (*left, *ours) if "deletionTimestamp" not in each["metadata"]]
    own = workspace_name(metadata.name)
    # Its own before others, and then what was used last.
    there.sort(key=lambda each: (each["name"] == own, each["creationTimestamp"], each["name"]))
    return there[-1]["name"] if there else None


def holder_of_claim(store: Store, sandbox: Sandbox) -> str | None:
    """Who else has the claim that the sandbox is to use: two who write to one volume destroy it."""
    metadata, status, workspace = sandbox.metadata, sandbox.status, sandbox.spec.workspace
    named = workspace.claim_name if workspace is not None else None
    name = named or status.workspace_claim or kept_claim(store, sandbox) or workspace_name(metadata.name)
    at_work = store.pods.mounting(namespace=metadata.namespace, claim=name)
    # Whoever has been let in comes first: another's pod may be the older one and be seen much later. Of two
    # that were made at once, each sandbox finds the same one first: one goes on, and not both or none.
    at_work.sort(key=lambda pod: not _is_let_in(pod, store))
    # Also when somebody has taken the owner off its pod.
    if at_work and (owner_uid(at_work[0]) == metadata.uid or uid_of(at_work[0]) == status.pod_uid):
        return None
    claim = store.claims.get(Key(metadata.namespace, name)) if named is not None else None
    user = _owner(claim, sandbox) or _user(store, claim, sandbox) if claim is not None else None
    return user or (f"the pod {at_work[0]['metadata']['name']}" if at_work else None)


def other_in_claim(store: Store, *, namespace: str, pod: PodFacts) -> str | None:
    """Which other pod has the volume of this one. Though it has to give way, somebody may be in it: whoever
    was let in by an operator that could not say so any more.
    """
    if pod.workspace_claim is None:
        return None
    found = store.pods.mounting(namespace=namespace, claim=pod.workspace_claim)
    others = (facts(each) for each in found if uid_of(each) != pod.uid)
    return next((f"the pod {each.name}" for each in others if not each.over), None)


def _is_let_in(pod: Json, store: Store) -> bool:
    """Its runtime has answered to its sandbox, as far as this operator has heard or an earlier one wrote."""
    bind = store.answers(uid_of(pod)).get(Errand.BIND)
    if bind is not None and bind.outcome is Outcome.DONE:
        return True
    owner = controller(pod["metadata"])
    sandbox = store.sandboxes.get(Key(pod["metadata"]["namespace"], owner.get("name", ""))) or {}
    status = section(sandbox, "status")
    works = "startedAt" in status or section(status, "setup").get("result") == "Running"
    return status.get("podUID") == uid_of(pod) and works


def _owner(claim: Json, sandbox: Sandbox) -> str | None:
    if is_left_by_a_pool(claim) and sandbox.status.workspace_claim != claim["metadata"]["name"]:
        return (
            f"the SandboxPool {section(claim['metadata'], 'annotations').get(ANNOTATION_POOL, '')}".rstrip()
        )
    owner = controller(claim["metadata"])
    if owner.get("apiVersion") != API_VERSION or owner.get("uid") == sandbox.metadata.uid:
        return None
    return f"the {owner['kind']} {owner['name']}"


def _user(store: Store, claim: Json, sandbox: Sandbox) -> str | None:
    """A sandbox that retains it, for as long as it lives and uses it."""
    name, namespace = claim["metadata"]["name"], sandbox.metadata.namespace
    user = section(claim["metadata"], "labels").get(LABEL_INSTANCE, "")
    other = store.sandboxes.get(Key(namespace, user)) if user != sandbox.metadata.name else None
    if other is None:
        return None
    status = section(other, "status")
    used = status.get("workspaceClaim") if status.get("phase") else workspace_name(user)
    return f"the Sandbox {user}" if used == name else None
