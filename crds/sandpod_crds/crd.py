"""The four CustomResourceDefinitions: the models' schemas, and how kubectl names and prints the
resources."""

from typing import Final

from pydantic import BaseModel

from .errors import Json
from .models import Sandbox, SandboxPolicy, SandboxPool, SandboxTemplate
from .names import (
    GROUP,
    POLICIES,
    POLICY_KIND,
    POOL_KIND,
    POOLS,
    SANDBOX_KIND,
    SANDBOXES,
    TEMPLATE_KIND,
    TEMPLATES,
    VERSION,
)
from .schema import structural

Column = tuple[str, str, str, str, int]

_AGE: Final[Column] = ("Age", "date", ".metadata.creationTimestamp", "When it was created.", 0)
_READY = '.status.conditions[?(@.type=="Ready")]'


def definitions() -> dict[str, Json]:
    """By plural name."""
    return {
        SANDBOXES: _definition(
            Sandbox,
            kind=SANDBOX_KIND,
            plural=SANDBOXES,
            short="sbx",
            columns=(
                (
                    "Phase",
                    "string",
                    ".status.phase",
                    "Pending, Starting, Running, Draining, Asleep or Failed.",
                    0,
                ),
                ("Ready", "string", f"{_READY}.status", "Whether the sandbox answers.", 0),
                ("Sleeps-After", "string", ".status.sleepAfter", "After how long without work it sleeps.", 0),
                ("Asleep", "date", ".status.asleepSince", "For how long it has been asleep.", 0),
                ("Why", "string", f"{_READY}.reason", "Why it is ready, is not, or sleeps.", 0),
                ("URL", "string", ".status.ports[0].url", "The preview URL of the first port.", 1),
                _AGE,
            ),
            subresources={"status": {}},
        ),
        TEMPLATES: _definition(
            SandboxTemplate,
            kind=TEMPLATE_KIND,
            plural=TEMPLATES,
            short="sbxt",
            columns=(("Image", "string", ".spec.image", "The image of its sandboxes.", 0), _AGE),
            subresources=None,
        ),
        POOLS: _definition(
            SandboxPool,
            kind=POOL_KIND,
            plural=POOLS,
            short="sbxp",
            columns=(
                ("Template", "string", ".spec.templateRef.name", "What its pods are made from.", 0),
                ("Desired", "integer", ".spec.replicas", "How many warm pods are wanted.", 0),
                ("Ready", "integer", ".status.readyReplicas", "How many can be claimed now.", 0),
                ("Claimed", "integer", ".status.claimed", "How many running sandboxes came out of it.", 0),
                _AGE,
            ),
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
            },
        ),
        POLICIES: _definition(
            SandboxPolicy,
            kind=POLICY_KIND,
            plural=POLICIES,
            short="sbxpol",
            columns=(
                ("Sandboxes", "integer", ".spec.maxSandboxes", "The most sandboxes in each namespace.", 0),
                ("CPU", "string", ".spec.maxResources.cpu", "The highest CPU limit of one sandbox.", 0),
                ("Memory", "string", ".spec.maxResources.memory", "The highest memory limit of one.", 0),
                ("Sleeps-After", "string", ".spec.maxSleepAfter", "The longest sleepAfter.", 0),
                ("Images", "string", ".spec.allowedImages", "The images that are allowed.", 1),
                _AGE,
            ),
            subresources=None,
            namespaced=False,
        ),
    }


def _definition(
    model: type[BaseModel],
    *,
    kind: str,
    plural: str,
    short: str,
    columns: tuple[Column, ...],
    subresources: Json | None,
    namespaced: bool = True,
) -> Json:
    version: Json = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in columns],
        "schema": {"openAPIV3Schema": _root(model)},
    }
    if subresources is not None:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                # Whoever asks for all of a namespace gets no error for what lies outside it.
                "categories": ["all", "sandpod"] if namespaced else [],
            },
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [version],
        },
    }


def _root(model: type[BaseModel]) -> Json:
    """The API server knows metadata itself, and refuses a schema for it."""
    schema = structural(model)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        # The name is mentioned only because a rule can blame no field that the schema does not have.
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        **{name: child for name, child in schema["properties"].items() if name in ("spec", "status")},
    }
    schema["required"] = [name for name in schema.get("required", []) if name == "spec"]
    return {name: value for name, value in schema.items() if value != []}


def _column(column: Column) -> Json:
    name, kind, path, description, priority = column
    return {"name": name, "type": kind, "jsonPath": path, "description": description, "priority": priority}
