"""Where a request that a cookie vouches for comes from. Browsers send cookies along whoever's page asks, and
every preview is the same site as the hostile one beside it: `SameSite` keeps none of them apart.
"""

from typing import Final

from aiohttp import hdrs, web

from .errors import Denied

_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class ForeignOrigin(Denied):
    """Another site's page has sent it."""


def origin_of(*, scheme: str, host: str) -> str:
    """As browsers write it; `host` is the Host header."""
    usual = _DEFAULT_PORTS.get(scheme, "")
    return f"{scheme}://{host.lower().removesuffix(usual)}"


def is_own(request: web.BaseRequest, own: str) -> bool:
    """Whether it comes from the preview's own pages, or from no page at all: an address that was typed in, a
    link that was followed.
    """
    origins = request.headers.getall(hdrs.ORIGIN, [])
    if origins:
        return origins == [own]
    if request.method not in _SAFE or hdrs.UPGRADE in request.headers:
        # Every browser sends an Origin with these.
        return False
    # An image, a script or a frame of ours in somebody else's page has no Origin. Browsers that do not send
    # this either are left with SameSite.
    if request.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none"):
        return True
    followed = (request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest"))
    return followed == ("navigate", "document")
