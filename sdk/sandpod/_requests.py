"""The requests the SDK makes, as values. Pure: nothing is sent here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from sandpod.errors import Invalid

Json = dict[str, Any]

API_VERSION = "sandpod.dev/v1alpha1"
KIND = "Sandbox"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
# How many objects of a list come in one answer: what kubectl asks for.
PAGE = 500
# A watch ends by itself after this long and is begun again where it ended; shorter than what load balancers
# allow.
WATCH_SECONDS = 240
# The runtime sends a comment at least every 30 s, so a stream that is silent for three of them is dead.
STREAM_SILENCE_SECONDS = 95.0
# A step of a setup may compile for long without a word, and nothing is sent meanwhile.
SETUP_SILENCE_SECONDS = 3600.0

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    method: str
    path: str
    # What it is about, for messages: `sandbox "demo" in namespace "default"`.
    subject: str
    query: dict[str, str] = field(default_factory=dict[str, str])
    body: Json | None = None
    accept: str = "application/json"
    content_type: str = "application/json"
    read_timeout: float = 30.0


def sandboxes(*, namespace: str | None, name: str | None = None) -> str:
    base = f"/apis/{API_VERSION}"
    if namespace is not None:
        base += f"/namespaces/{_segment(namespace, what='namespace')}"
    return f"{base}/sandboxes" + (f"/{_segment(name, what='sandbox')}" if name is not None else "")


def proxied(*, namespace: str, name: str, path: str) -> str:
    """The address, in the API server, of a path of the sandbox's runtime."""
    return _run(namespace=namespace, name=name, path=f"proxy/{path}")


def _run(*, namespace: str, name: str, path: str) -> str:
    return (
        f"/apis/run.{API_VERSION}/namespaces/{_segment(namespace, what='namespace')}"
        f"/sandboxes/{_segment(name, what='sandbox')}/{path}"
    )


def sleep(*, namespace: str, name: str) -> Request:
    return Request(
        method="POST",
        path=_run(namespace=namespace, name=name, path="sleep"),
        subject=subject(namespace=namespace, name=name),
    )


def ports(method: str, *, namespace: str, name: str, body: Json | None = None) -> Request:
    return Request(
        method=method,
        path=_run(namespace=namespace, name=name, path="ports"),
        subject=subject(namespace=namespace, name=name),
        body=body,
    )


def exposed_port(method: str, *, namespace: str, name: str, port: int, action: str = "") -> Request:
    return Request(
        method=method,
        path=_run(namespace=namespace, name=name, path=f"ports/{port:d}{action}"),
        subject=f"exposed port {port:d} of {subject(namespace=namespace, name=name)}",
    )


def _segment(text: str, *, what: str) -> str:
    # Beyond courtesy: an empty name would make a request for one sandbox one for all of them.
    if not _NAME.fullmatch(text):
        raise Invalid(
            f"{text!r} cannot be the name of a {what}.",
            hint="Names are lower-case letters, digits and hyphens.",
        )
    return quote(text, safe="")


def subject(*, namespace: str | None, name: str | None = None) -> str:
    where = f'namespace "{namespace}"' if namespace is not None else "all namespaces"
    return f'sandbox "{name}" in {where}' if name is not None else f"sandboxes in {where}"


def get(*, namespace: str, name: str, accept: str = "application/json") -> Request:
    return Request(
        method="GET",
        path=sandboxes(namespace=namespace, name=name),
        subject=subject(namespace=namespace, name=name),
        accept=accept,
    )


def list_page(
    *,
    namespace: str | None,
    after: str = "",
    name: str | None = None,
    label_selector: str = "",
    accept: str = "application/json",
) -> Request:
    """A list of one, by its name, is how to begin a watch of one: the version of a list is a recent one.

    That of an object is from when it was changed last, which the server may not remember any more.
    """
    query = {
        "limit": str(PAGE),
        "continue": after,
        "fieldSelector": f"metadata.name={name}" if name is not None else "",
        "labelSelector": label_selector,
    }
    return Request(
        method="GET",
        path=sandboxes(namespace=namespace),
        subject=subject(namespace=namespace, name=name),
        query={key: value for key, value in query.items() if value},
        accept=accept,
    )


def create(*, namespace: str, manifest: Json) -> Request:
    name = manifest.get("metadata", {}).get("name")
    return Request(
        method="POST",
        path=sandboxes(namespace=namespace),
        subject=subject(namespace=namespace, name=name),
        # Strict: a misspelt field is an answer, not a sandbox that lacks something.
        query={"fieldManager": "sandpod-sdk", "fieldValidation": "Strict"},
        body=manifest,
    )


def patch(*, namespace: str, name: str, changes: Json) -> Request:
    """What `changes` has is laid over the object; null removes (RFC 7386)."""
    return Request(
        method="PATCH",
        path=sandboxes(namespace=namespace, name=name),
        subject=subject(namespace=namespace, name=name),
        query={"fieldManager": "sandpod-sdk", "fieldValidation": "Strict"},
        body=changes,
        content_type="application/merge-patch+json",
    )


def setup_log(*, namespace: str, name: str, follow: bool) -> Request:
    return Request(
        method="GET",
        path=proxied(namespace=namespace, name=name, path="api/setup/log"),
        subject=subject(namespace=namespace, name=name),
        query={"follow": "true"} if follow else {},
        accept="text/plain",
        read_timeout=SETUP_SILENCE_SECONDS if follow else 30.0,
    )


def delete(*, namespace: str, name: str, uid: str | None) -> Request:
    return Request(
        method="DELETE",
        path=sandboxes(namespace=namespace, name=name),
        subject=subject(namespace=namespace, name=name),
        body={
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            **({"preconditions": {"uid": uid}} if uid else {}),
        },
    )


def watch(
    *,
    namespace: str | None,
    resource_version: str,
    name: str | None = None,
    label_selector: str = "",
    accept: str = "application/json",
) -> Request:
    query = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(WATCH_SECONDS),
        "fieldSelector": f"metadata.name={name}" if name is not None else "",
        "labelSelector": label_selector,
    }
    return Request(
        method="GET",
        path=sandboxes(namespace=namespace),
        subject=subject(namespace=namespace, name=name),
        query={key: value for key, value in query.items() if value},
        accept=accept,
        read_timeout=WATCH_SECONDS + 30.0,
    )


def execute_stream(*, namespace: str, name: str, body: Json) -> Request:
    return Request(
        method="POST",
        path=proxied(namespace=namespace, name=name, path="api/execute/stream"),
        subject=subject(namespace=namespace, name=name),
        body=body,
        accept="text/event-stream",
        read_timeout=STREAM_SILENCE_SECONDS,
    )


def cluster_version() -> Request:
    return Request(method="GET", path="/version", subject="the cluster's version", read_timeout=5.0)


def api_group() -> Request:
    """The discovery document of the gateway's API. The gateway itself answers, which shows that it works."""
    return Request(method="GET", path=f"/apis/run.{API_VERSION}", subject="Sandpod's API", read_timeout=5.0)
