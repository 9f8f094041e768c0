"""Whose a PersistentVolumeClaim is that a sandbox wants to use: left by an earlier one of its name, or still
another's.
"""

from sandpod_crds.models import Sandbox
from sandpod_crds.names import API_VERSION, LABEL_INSTANCE

from .objects import Json, controller, owner_uid, section
from .observations import Key
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
    # Of two that were made at once, each sandbox finds the same one first: one goes on, and not both or none.
    if at_work and owner_uid(at_work[0]) == metadata.uid:
        return None
    claim = store.claims.get(Key(metadata.namespace, name)) if named is not None else None
    user = _owner(claim, sandbox) or _user(store, claim, sandbox) if claim is not None else None
    return user or (f"the pod {at_work[0]['metadata']['name']}" if at_work else None)


def _owner(claim: Json, sandbox: Sandbox) -> str | None:
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
