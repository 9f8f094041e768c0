"""What somebody sees at a preview's address instead of the program: a small page for people, the same in JSON
for programs. It tells what is the matter and what to do, and nothing that the address itself does not tell.
"""

import html
import json
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs, web

from .errors import (
    BadRequest,
    BrokenOff,
    Conflict,
    Denied,
    NobodyListens,
    NotAllowed,
    NotFound,
    NotReady,
    NotStarting,
    Refusal,
    TooMany,
    Unauthenticated,
    Unchecked,
)
from .login import LinkUsed
from .origins import ForeignOrigin
from .waiting import Full


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    code: str
    title: str
    text: str
    # After so many seconds it is worth trying again, which the page does by itself where it may.
    retry: int | None = None


NOT_FOUND: Final = Page(
    404,
    "NOT_FOUND",
    "There is nothing here",
    "The address is wrong, or it is no longer valid. Ask whoever gave it to you for the present one.",
)
LOGGED_OUT: Final = Page(
    200,
    "LOGGED_OUT",
    "You are logged out",
    "This browser has no login for this address any more. `sandpod open` makes a new one.",
)
FAILED: Final = Page(
    500, "INTERNAL_ERROR", "The gateway failed", "Try again; its operators find more in its log."
)

# The first that fits: the special ones come before those that they are a kind of.
_PAGES: Final[tuple[tuple[type[Refusal], Page], ...]] = (
    (
        NobodyListens,
        Page(
            502,
            "PORT_NOT_LISTENING",
            "Nothing is listening yet",
            "The sandbox is awake, but no program in it listens on this port. Start one, on 0.0.0.0 and "
            "not only on 127.0.0.1.",
            retry=2,
        ),
    ),
    (
        Full,
        Page(
            503,
            "TOO_MANY_WAITING",
            "Many are waiting",
            "The sandbox is waking up, and as many requests wait for it as can.",
            retry=3,
        ),
    ),
    (
        NotStarting,
        Page(
            503,
            "SANDBOX_FAILED",
            "It cannot start",
            "The sandbox could not be started. Its owner finds the reason in the sandbox's status.",
            # It is tried again at least every five minutes.
            retry=30,
        ),
    ),
    (
        Unchecked,
        Page(
            503,
            "NOT_CHECKED",
            "It could not be checked",
            "The cluster did not say whether you may open this.",
            retry=2,
        ),
    ),
    (
        NotReady,
        Page(
            503,
            "SANDBOX_NOT_READY",
            "Waking up",
            "The sandbox is waking up or starting.",
            retry=2,
        ),
    ),
    (
        Conflict,
        Page(
            409,
            "SANDBOX_PAUSED",
            "Paused",
            "The sandbox was put to sleep by its owner, and only its owner can resume it.",
        ),
    ),
    (
        BrokenOff,
        Page(
            502,
            "PROGRAM_BROKE_OFF",
            "The program broke off",
            "The program in the sandbox ended the connection before it answered in full, or answered with "
            "something that is not HTTP.",
        ),
    ),
    (
        TooMany,
        Page(
            429,
            "TOO_MANY_REQUESTS",
            "Too many requests",
            "As many requests to this port are under way as may be. Wait for one of them to end.",
            retry=1,
        ),
    ),
    (
        LinkUsed,
        Page(
            401,
            "LOGIN_LINK_USED",
            "This login link is used up",
            "Each link can be opened once, and soon after it was made. Get another one with `sandpod open`.",
        ),
    ),
    (
        Unauthenticated,
        Page(
            401,
            "LOGIN_NEEDED",
            "This address is private",
            "Open it with a login link, which whoever may use the sandbox gets from `sandpod open`, or send "
            "a Kubernetes bearer token in the header Authorization.",
        ),
    ),
    (
        ForeignOrigin,
        Page(
            403,
            "FOREIGN_ORIGIN",
            "Not from another site",
            "A page of another site has sent this request with your login. Only the preview's own pages may; "
            "programs send a bearer token instead.",
        ),
    ),
    (
        Denied,
        Page(
            403,
            "NOT_ALLOWED",
            "You may not open this",
            "You are known, but not allowed to open this sandbox's ports. Its owner can give you the right "
            "`get` on `sandboxes/ports` in the API group sandpod.dev.",
        ),
    ),
    (NotFound, NOT_FOUND),
    (
        NotAllowed,
        Page(
            405, "METHOD_NOT_ALLOWED", "Not here", "Requests with this method are not passed on to sandboxes."
        ),
    ),
    (
        BadRequest,
        Page(
            400,
            "BAD_REQUEST",
            "The request is malformed",
            "It could not be passed on as it is: check its target, its headers and the length of its body.",
        ),
    ),
)

_AGAIN: Final = "This page tries again by itself."
_SEND_AGAIN: Final = "Send it again in a moment."

# Kept by nobody, told to nobody.
QUIET: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_HEADERS: Final = QUIET | {"X-Content-Type-Options": "nosniff", "Vary": "Accept"}
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors *"
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0 1rem;"
    "color:#222;background:#fafafa}main{max-width:34rem}h1{font-size:1.4rem;margin:0 0 .5rem}"
    "p{margin:0}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}"
)


def page_of(refusal: Refusal) -> Page:
    return next((page for kind, page in _PAGES if isinstance(refusal, kind)), FAILED)


def show(page: Page, request: web.BaseRequest) -> web.Response:
    headers = dict(_HEADERS)
    if page.retry is not None:
        headers["Retry-After"] = str(page.retry)
    if page.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    text, by_itself = page.text, may_try_again(request)
    if page.retry is not None:
        text += f" {_AGAIN if by_itself else _SEND_AGAIN}"
    if not _wants_page(request):
        document = {"code": page.code, "message": text, "httpStatus": page.status}
        body = json.dumps(document).encode() + b"\n"
        return web.Response(
            status=page.status, body=body, headers=headers | {"Content-Type": "application/json"}
        )
    headers |= {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": _POLICY}
    retry = page.retry if by_itself else None
    return web.Response(status=page.status, body=_html(page.title, text, retry=retry), headers=headers)


def may_try_again(request: web.BaseRequest) -> bool:
    """Whether a page that is shown for this tries again by itself: where that changes nothing. A form is not
    sent twice.
    """
    return _wants_page(request) and request.method in (hdrs.METH_GET, hdrs.METH_HEAD)


def _wants_page(request: web.BaseRequest) -> bool:
    return "text/html" in request.headers.get(hdrs.ACCEPT, "").lower()


def _html(title: str, text: str, *, retry: int | None) -> bytes:
    refresh = "" if retry is None else f'<meta http-equiv="refresh" content="{retry}">'
    title = html.escape(title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>{refresh}'
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        f"<p>{html.escape(text)}</p></main></body></html>\n"
    ).encode()
