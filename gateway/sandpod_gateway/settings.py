"""The gateway's settings: one JSON object in SANDPOD_SETTINGS, so that a change of one changes the pod and
nothing has to watch for it. An unknown field is an error: a misspelt setting is not a setting.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork
from pydantic.alias_generators import to_camel
from sandpod_crds import names
from sandpod_crds.previews import Site


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    system_namespace: str = names.SYSTEM_NAMESPACE
    key_secret: str = names.KEY_SECRET
    tls_secret: str = names.TLS_SECRET
    https_port: int = Field(default=8443, ge=0, le=65535)
    metrics_port: int = Field(default=9090, ge=0, le=65535)
    # Where to knock when the operator wants to know what a NetworkPolicy keeps out
    operator_host: str = names.OPERATOR
    operator_metrics_port: int = Field(default=9090, ge=1, le=65535)
    operator_canary_port: int = Field(default=9091, ge=1, le=65535)
    # Previews and the API for bearer tokens; 0 in tests: whatever is free
    http_port: int = Field(default=8080, ge=0, le=65535)
    # The folder of the sockets that are shared with HAProxy, which then listens on the port above for us, and
    # the map in it that we fill. Empty: there is none.
    sockets: str = ""
    haproxy_map: str = "/haproxy/hosts.map"
    # Where previews live; None when the platform team wants none
    site: Site | None = Site()
    # The networks of proxies in front of the gateway, which say in X-Forwarded-For and -Proto who a client
    # is. HAProxy, where there is one, has a list of its own.
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    # How long a login link is good for, once, and how long the login that it gives
    login_link_seconds: int = Field(default=60, gt=0, le=600)
    login_seconds: int = Field(default=8 * 3600, gt=0, le=30 * 86400)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # How long a decision of RBAC is believed
    authorization_cache_seconds: float = Field(default=5, ge=0, le=300)
    # How long a request waits for a sandbox that is starting
    ready_wait_seconds: float = Field(default=0.5, ge=0, le=30)
    # How long a request waits for a sandbox that wakes for it, how many may wait for one, and how many in all
    wake_wait_seconds: float = Field(default=60, ge=0, le=600)
    max_waiting_per_sandbox: int = Field(default=100, gt=0)
    max_waiting_per_namespace: int = Field(default=500, gt=0)
    max_waiting: int = Field(default=2000, gt=0)
    # How long a request waits for a program that has not listened on its port since the sandbox woke
    port_wait_seconds: float = Field(default=15, ge=0, le=300)
    # For how long a runtime is asked to stay awake for a request that is on its way: no longer than the
    # shortest `sleepAfter`, or a sandbox would sleep later than it was told to
    lease_seconds: float = Field(default=1, gt=0, le=60)
    # How often the certificate and the front proxy's CA are read again
    refresh_seconds: float = Field(default=60, gt=0)

    # Connections that the API server may hold open to one replica. One that sends half a request's
    # head holds more than 64 KB, and the pod's limit is 512 MiB.
    max_connections: int = Field(default=2048, gt=0)
    # … and how many of them one address may at the port for everybody, unless it is a trusted proxy's
    max_connections_per_source: int = Field(default=1024, gt=0)
    # Requests that one user, or one address, may send in a second, and how many at once after a quiet time
    user_requests_per_second: float = Field(default=500, gt=0)
    user_burst: int = Field(default=2000, gt=0)
    source_requests_per_second: float = Field(default=1000, gt=0)
    source_burst: int = Field(default=4000, gt=0)
    # Tokens of one address that the API server may refuse
    refused_tokens_per_minute: int = Field(default=60, gt=0)

    # Requests under way to one sandbox, to those of one namespace, and to all of them, each of which is a
    # connection to a runtime
    max_requests_per_sandbox: int = Field(default=256, gt=0)
    max_requests_per_namespace: int = Field(default=1024, gt=0)
    max_requests: int = Field(default=2048, gt=0)
    connect_timeout_seconds: float = Field(default=2, gt=0)

    # After SIGTERM: for how long requests are still accepted, because not everybody has heard yet …
    drain_delay_seconds: float = Field(default=3, ge=0)
    # … and for how long after that those under way may take. Both within the pod's 30 s of grace.
    drain_seconds: float = Field(default=22, ge=0)

    @property
    def most_from_haproxy(self) -> int:
        """Connections: whoever is one too many shall be told so, and not be hung up on."""
        return self.max_requests + self.max_waiting + 512

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.model_validate_json(text or "{}")
