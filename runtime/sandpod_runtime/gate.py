"""Who may ask for what, decided before anything about the request is looked at.

Without a bind only the probes and the bind itself are open; after it everything needs the credential, but for
the question whether we hold it. Once the end has begun nothing new is admitted, but for that question and a
look at how it goes. On a laptop (--insecure) there is no
credential, so requests that a web page could have sent are refused instead.
"""

from urllib.parse import urlsplit

from sandpod_runtime.errors import Fault
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.wire import Request

CREDENTIAL_HEADER = "X-Sandpod-Credential"
GREETING = ("GET", "/")
READINESS = ("GET", "/readyz")
# For probes, which have no credential.
OPEN = frozenset((GREETING, READINESS))
BIND = ("POST", "/api/bind")
LIFECYCLE = ("GET", "/api/lifecycle")
# Before the credential is sent here: afterwards would be too late to find out that we are another pod's.
PROVE = ("GET", "/api/prove")
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class Gate:
    def __init__(self, identity: Identity, life: Life) -> None:
        self._identity = identity
        self._life = life

    def admit(self, request: Request, route: tuple[str, str]) -> None:
        if route in OPEN:
            return
        if route not in (LIFECYCLE, PROVE):
            self._life.refuse_when_over()
        if self._identity.insecure:
            _refuse_web_pages(request)
        if route in (BIND, PROVE):
            return
        if self._identity.insecure:
            return
        if self._identity.bound is None:
            raise Fault(
                "CONTAINER_UNAVAILABLE",
                "the runtime is not bound to a sandbox yet",
                suggestion="try again in a moment: the operator binds it",
            )
        if not self._identity.accepts(request.headers.get(CREDENTIAL_HEADER, "")):
            raise Fault("UNAUTHENTICATED", f"the header {CREDENTIAL_HEADER} is missing or wrong")
        if not self._life.begun:
            raise Fault("CONTAINER_UNAVAILABLE", "the runtime is restoring what was saved; nothing was done")


def _refuse_web_pages(request: Request) -> None:
    """Every page in the developer's browser can reach loopback; with CORS open to all it could run
    commands.

    A page's request names its origin; one that got here by a name which its owner made resolve to loopback
    names that.
    """
    origin = request.headers.get("Origin")
    if origin is not None and _host(origin) not in _LOOPBACK:
        raise Fault("PERMISSION_DENIED", f"with --insecure, pages from {origin} may not use the runtime")
    if _host(f"//{request.headers.get('Host', '')}") not in _LOOPBACK:
        raise Fault("PERMISSION_DENIED", "with --insecure, the runtime answers to localhost only")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
