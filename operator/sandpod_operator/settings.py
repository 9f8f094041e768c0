"""What the chart tells the operator, as one JSON object in SANDPOD_SETTINGS, and what is found out beside."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic.alias_generators import to_camel
from sandpod_crds import names
from sandpod_crds.previews import Site

from .errors import BadSettings
from .memo import Memo


class _Settings(BaseModel):
    # A typo in a setting must not pass for the default.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class RuntimeMount(StrEnum):
    AUTO = "Auto"
    IMAGE_VOLUME = "ImageVolume"
    INIT_CONTAINER = "InitContainer"


class Defaults(_Settings):
    """What a sandbox gets that does not say otherwise."""

    user: int = Field(default=1000, ge=1, le=2_147_483_647)
    resources: dict[str, dict[str, str | int]] = {}


Range = IPv4Network | IPv6Network
Ports = Annotated[list[Annotated[int, Field(ge=1, le=65535)]], Field(min_length=1)]


class Dns(_Settings):
    """Where the cluster's names are resolved, which every sandbox may ask."""

    namespace: str = "kube-system"
    pod_labels: dict[str, str] = {"k8s-app": "kube-dns"}
    # Of the pods, not of their Service.
    ports: Ports = [53]
    # The address of a cache on each node, where the cluster has one.
    node_local: Annotated[IPv4Address | IPv6Address, PlainValidator(ip_address)] | None = None


class NetworkSettings(_Settings):
    # What is not the Internet: addresses of pods, Services and nodes, and of the network they stand in.
    cluster_ranges: list[Annotated[Range, PlainValidator(ip_network)]] = [
        ip_network(each)
        for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
    ]
    dns: Dns = Dns()
    # Whether the chart has made `canary_policy`, by which we can tell.
    detect_enforcement: bool = True


class Previews(_Settings):
    # Ingress: one for each exposed port. Wildcard: the chart has made one for all of them. None: no previews.
    mode: Literal["Ingress", "Wildcard", "None"] = "Ingress"
    site: Site = Site()
    ingress_class: str = ""
    # Of a certificate for all previews' hosts; without one the ingress controller's default counts.
    tls_secret: str = ""
    annotations: dict[str, str] = {}


class Pools(_Settings):
    # Namespaces in which the operator may read what a sandbox's environment refers to, to hand it to a warm
    # pod; "*" for all. The chart grants what it says here.
    read_secrets: list[str] = []
    # Of one pool's pods, so many start at a time: more would take the CPU of those who claim.
    most_starting: int = Field(default=4, ge=1, le=1000)


class Settings(_Settings):
    sandbox_image: str
    runtime_image: str
    system_namespace: str = names.SYSTEM_NAMESPACE
    # Shell patterns of images that have the runtime inside; `sandbox_image` has it anyway.
    built_in_images: list[str] = []
    runtime_mount: RuntimeMount = RuntimeMount.AUTO
    # Of our own images. A user's image follows Kubernetes' defaults.
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[str] = []
    # Storage classes whose drivers know ReadWriteOncePod, which Kubernetes does not tell.
    exclusive_storage_classes: list[str] = []
    # Of sandboxes that name none; empty: the cluster's default.
    priority_class_name: str = ""
    defaults: Defaults = Defaults()
    key_secret: str = names.KEY_SECRET
    tls_secret: str = names.TLS_SECRET
    gateway_service: str = names.GATEWAY
    api_service: str = names.RUN_API_SERVICE
    certificates: Literal["Managed", "External"] = "Managed"
    start_timeout_seconds: float = Field(default=60, gt=0)
    # What the pods of the operator and the gateway carry, besides the label of their component.
    release_labels: dict[str, str] = {names.LABEL_NAME: names.APP_NAME}
    network: NetworkSettings = NetworkSettings()
    canary_policy: str = names.OPERATOR
    pools: Pools = Pools()
    previews: Previews = Previews()
    # Whether a node's drain waits for the sandboxes that work on it.
    protect_from_drain: bool = True
    # For how long after its node was cordoned; 0: for as long as they work.
    protect_from_drain_seconds: float = Field(default=3600, ge=0)
    log_level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, kw_only=True)
class Installation:
    """All that a decision depends on besides the cluster's objects."""

    settings: Settings
    version: str
    # The installation's secret: everything that authenticates is derived from it.
    key: bytes = field(repr=False)
    # Resolved: never Auto.
    runtime_mount: RuntimeMount
    # Of what follows from all this and a sandbox's spec
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    text = environment.get(names.SETTINGS_ENV)
    if not text:
        raise BadSettings(f"{names.SETTINGS_ENV} is not set; the chart sets it to a JSON object")
    try:
        return Settings.model_validate_json(text)
    except ValidationError as error:
        raise BadSettings(f"{names.SETTINGS_ENV}: {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    details: list[Any] = list(error.errors(include_url=False, include_input=False))
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in details)
