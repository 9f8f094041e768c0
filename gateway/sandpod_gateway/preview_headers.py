"""Which headers cross the gateway between a person's browser and a program in a sandbox. Neither side is
ours: the program gets what the browser sent but for the gateway's own cookie and for claims that only the
gateway can make; the browser gets what the program sent but for cookies that would reach other previews.
"""

import re
from typing import Final

from .headers import HOP_BY_HOP, NOT_TO_CLIENT_PREFIXES, RawHeaders, lines, values, well_formed

# Proof of a login at this host. The prefix makes browsers keep it to this one host.
COOKIE: Final = "__Host-sandpod"

_NOT_TO_APP: Final = HOP_BY_HOP | {b"cookie", b"expect", b"forwarded", b"host", b"traceparent", b"x-real-ip"}
_NOT_TO_APP_PREFIXES: Final = (b"x-forwarded-", b"x-sandpod-")
_NOT_TO_CLIENT: Final = HOP_BY_HOP | {b"set-cookie"}
# Characters of a URL's path, query and fragment. A second slash or a backslash at its beginning would make
# the rest a host; whatever browsers leave out of a URL, such as a tab, is not among them.
_LOCAL: Final = re.compile(r"/(?![/\\])[A-Za-z0-9\-._~!$&'()*+,;=:@%/?#]*")
_LONGEST_PATH: Final = 2048
_DOMAIN: Final = re.compile(rb";\s*domain\s*=", re.IGNORECASE)
_REFERRER: Final = b"Referrer-Policy: no-referrer\r\n"


def to_app(
    headers: RawHeaders,
    *,
    host: bytes,
    source: str,
    scheme: str,
    traceparent: str,
    credentials_are_ours: bool,
) -> list[bytes]:
    """`host` as the client wrote it. `credentials_are_ours`: what Authorization holds was meant for the
    gateway, and opens more than this program.
    """
    drop = _NOT_TO_APP | {b"authorization"} if credentials_are_ours else _NOT_TO_APP
    kept = lines(headers, drop=drop, prefixes=_NOT_TO_APP_PREFIXES)
    cookies = b"; ".join(_without_ours(value) for value in values(headers, b"cookie")).strip(b"; ")
    return [
        b"Host: " + host + b"\r\n",
        *kept,
        *([b"Cookie: " + cookies + b"\r\n"] if cookies else []),
        b"X-Forwarded-For: " + source.encode() + b"\r\n",
        b"X-Forwarded-Host: " + host + b"\r\n",
        b"X-Forwarded-Proto: " + scheme.encode() + b"\r\n",
        b"Traceparent: " + traceparent.encode() + b"\r\n",
    ]


def to_browser(headers: RawHeaders) -> list[bytes] | None:
    """None when the program sent what no header may hold."""
    if not well_formed(headers):
        return None
    kept = lines(headers, drop=_NOT_TO_CLIENT, prefixes=NOT_TO_CLIENT_PREFIXES)
    kept += [
        b"Set-Cookie: " + value + b"\r\n" for value in values(headers, b"set-cookie") if _stays_here(value)
    ]
    if not values(headers, b"referrer-policy"):
        # The token stands in the host name: the sites that a page links to must not learn it.
        kept.append(_REFERRER)
    return kept


def local_path(text: str) -> str:
    """What is safe to be redirected to: the same when it is a path on this host, else its beginning."""
    return text if len(text) <= _LONGEST_PATH and _LOCAL.fullmatch(text) else "/"


def _without_ours(cookies: bytes) -> bytes:
    pairs = (pair.strip() for pair in cookies.split(b";"))
    return b"; ".join(pair for pair in pairs if pair and not _is_ours(pair))


def _stays_here(cookie: bytes) -> bool:
    return not _DOMAIN.search(cookie) and not _is_ours(cookie)


def _is_ours(pair: bytes) -> bool:
    # Browsers compare the prefix without regard to case. A cookie without a name is sent as its value alone.
    return pair.lstrip(b" \t=").partition(b"=")[0].strip().lower() == COOKIE.lower().encode()
