"""The PersistentVolumeClaim that holds a sandbox's workspace."""

from sandpod_crds.models import Workspace

from ..objects import Json
from ..settings import Settings


def workspace_name(pod_or_sandbox: str) -> str:
    return f"{pod_or_sandbox}-workspace"


def build_claim(
    workspace: Workspace,
    *,
    name: str,
    namespace: str,
    labels: dict[str, str],
    owner: Json | None,
    settings: Settings,
) -> Json:
    """Without an owner it outlives whoever it was made for."""
    exclusive = workspace.storage_class_name in settings.exclusive_storage_classes
    spec: Json = {
        "accessModes": ["ReadWriteOncePod" if exclusive else "ReadWriteOnce"],
        "resources": {"requests": {"storage": str(workspace.size)}},
    }
    if workspace.storage_class_name is not None:
        spec["storageClassName"] = workspace.storage_class_name
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
