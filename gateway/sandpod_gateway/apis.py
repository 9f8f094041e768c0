"""The two doors' common room put together, and door two in front of it."""

from collections.abc import Callable
from functools import partial
from typing import Final

from sandpod_crds.kube import Kube

from .api_server import ApiServer
from .authorization import Authorizer
from .bearer import Tokens
from .fastpath.path import FastPath
from .login import Seals
from .login_api import LoginApi
from .metrics import Metrics
from .objects import Objects
from .ports_api import PortsApi
from .private import Private
from .rates import Buckets, Places, Rates
from .routes import RouteTable
from .sandbox_api import SandboxApi
from .settings import Settings
from .spent import Spent
from .subresources import Subresources
from .v1 import V1Api

# Requests that are passed on to the API server, of one user and of all: watches are among them, and of the
# others the bodies are in memory.
PASSED_ON_EACH: Final = 32
PASSED_ON: Final = 256


class Apis:
    """`server` is closed by whoever has made it."""

    def __init__(
        self,
        *,
        settings: Settings,
        kube: Kube,
        server: ApiServer,
        table: RouteTable,
        key: bytes,
        sandboxes: SandboxApi,
        authorizer: Authorizer,
        metrics: Metrics,
        draining: Callable[[], bool],
        fast: FastPath | None,
    ) -> None:
        self.rates = Rates(
            users=Buckets(per_second=settings.user_requests_per_second, burst=settings.user_burst),
            sources=Buckets(per_second=settings.source_requests_per_second, burst=settings.source_burst),
            count=lambda by: metrics.count("rate_limited_total", by=by),
        )
        seals = Seals(key=key)
        ports = PortsApi(kube=kube, table=table, key=key, site=settings.site, fast=fast)
        self.subresources = Subresources(
            sandboxes=sandboxes,
            ports=ports,
            logins=LoginApi(
                read=ports.read,
                key=key,
                seals=seals,
                site=settings.site,
                seconds=settings.login_link_seconds,
            ),
        )
        tokens = Tokens(
            kube=kube,
            cache_seconds=settings.authorization_cache_seconds,
            failures=Buckets(
                per_second=settings.refused_tokens_per_minute / 60, burst=settings.refused_tokens_per_minute
            ),
            count=partial(metrics.count, "token_reviews_total"),
        )
        self.private = Private(
            seals=seals,
            tokens=tokens,
            authorizer=authorizer,
            spent=Spent(kube=kube, longest=settings.login_link_seconds),
            login_seconds=settings.login_seconds,
        )
        full = "as many requests to the API server as are allowed are under way here, of you or of all"
        self.v1 = V1Api(
            subresources=self.subresources,
            objects=Objects(server=server, places=Places(each=PASSED_ON_EACH, total=PASSED_ON, full=full)),
            tokens=tokens,
            rates=self.rates,
            draining=draining,
        )
