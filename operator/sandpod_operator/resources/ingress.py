"""The Ingress of one exposed port: it brings a preview's host to the gateway, whatever its pod does. Pure."""

from sandpod_crds.models import PortStatus, Sandbox
from sandpod_crds.names import (
    ANNOTATION_HASH,
    COMPONENT_PREVIEW,
    GROUP,
    LABEL_COMPONENT,
    LABEL_SANDBOX_NAMESPACE,
    LABEL_VERSION,
    child_labels,
)

from ..objects import Json, digest, section, uid_of
from ..settings import Installation

# What the chart had us write, by name: what it does not want any more cannot be told from others' otherwise.
ANNOTATION_SET = f"{GROUP}/annotations"


def ingress_name(*, port: int, sandbox_uid: str) -> str:
    # By UID: they are all in one namespace, whatever namespaces their sandboxes are in.
    return f"preview-{port}-{sandbox_uid}"


def build_ingress(port: PortStatus, *, host: str, sandbox: Sandbox, installation: Installation) -> Json:
    settings, previews = installation.settings, installation.settings.previews
    owner = sandbox.metadata
    backend = {"service": {"name": settings.gateway_service, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec: Json = {"rules": [{"host": host, "http": {"paths": [path]}}]}
    if previews.ingress_class:
        spec["ingressClassName"] = previews.ingress_class
    if previews.tls_secret:
        spec["tls"] = [{"hosts": [host], "secretName": previews.tls_secret}]
    elif previews.site.scheme == "https":
        spec["tls"] = [{"hosts": [host]}]
    labels = {
        **child_labels(sandbox_name=owner.name, sandbox_uid=owner.uid, version=installation.version),
        LABEL_COMPONENT: COMPONENT_PREVIEW,
        LABEL_SANDBOX_NAMESPACE: owner.namespace,
    }
    stable = {key: value for key, value in labels.items() if key != LABEL_VERSION}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": ingress_name(port=port.port, sandbox_uid=owner.uid),
            "namespace": settings.system_namespace,
            "labels": labels,
            "annotations": {
                **previews.annotations,
                ANNOTATION_SET: ",".join(sorted(previews.annotations)),
                # Without the version: an operator's upgrade rewrites none of them.
                ANNOTATION_HASH: digest([stable, previews.annotations, spec]),
            },
        },
        "spec": spec,
    }


def is_as_wanted(found: Json, wanted: Json) -> bool:
    """An admission controller may add to it what it likes, but not send the host elsewhere."""
    theirs, ours = found["metadata"], wanted["metadata"]
    labels = {key: value for key, value in ours["labels"].items() if key != LABEL_VERSION}
    return (
        section(theirs, "annotations").get(ANNOTATION_HASH) == ours["annotations"][ANNOTATION_HASH]
        and labels.items() <= section(theirs, "labels").items()
        and section(found, "spec").get("rules") == wanted["spec"]["rules"]
    )


def correction(found: Json, wanted: Json) -> Json:
    """The merge patch. A class that the cluster has chosen for us stays: a patch would not choose again."""
    set_before: str = section(found["metadata"], "annotations").get(ANNOTATION_SET, "")
    gone = {name: None for name in set_before.split(",") if name}
    annotations = {**gone, **wanted["metadata"]["annotations"]}
    metadata: Json = {
        "uid": uid_of(found),
        "labels": wanted["metadata"]["labels"],
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": {"tls": None, **wanted["spec"]}}
