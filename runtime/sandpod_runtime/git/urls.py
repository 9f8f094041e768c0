"""Addresses of repositories: which are accepted, what a clone is called, and what of them is secret."""

import re
from urllib.parse import unquote, urlsplit

LONGEST = 2048
MASK = "******"
# Others run programs of the address's choosing (ext::, fd::) or were never asked for (ftp).
SCHEMES = ("https", "http", "ssh", "git", "file")
ALLOWED_PROTOCOLS = ":".join(SCHEMES)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_USERINFO = re.compile(r"([a-z][a-z0-9+.-]*://)([^\s/?#'\"]*)@", re.IGNORECASE)
_QUERY = re.compile(
    r"([?&][\w.-]*(?:token|secret|passw|signature|credential|api_?key|x-amz-)[\w.-]*=)[^&\s'\"#]*",
    re.IGNORECASE,
)
# Shorter ones would make a message unreadable, and are no secret.
_SHORTEST_SECRET = 4


def problem(url: str) -> str | None:
    """Why this cannot be cloned from, or None."""
    if not url:
        return "give the address of a repository"
    if len(url) > LONGEST:
        return f"an address is at most {LONGEST} characters long"
    if not url.isprintable():
        return "an address cannot hold NUL or other control characters"
    if url.startswith("-"):
        return "an address cannot begin with '-'"
    scheme = _SCHEME.match(url)
    if _HELPER.match(url) or (scheme and scheme[1].lower() not in SCHEMES):
        return f"only {', '.join(SCHEMES)} and local paths can be cloned from"
    return None


def name_problem(name: str) -> str | None:
    """Why this cannot be the name of a branch, tag, commit or remote, or None. git itself says the rest."""
    if not name.strip():
        return "give a name"
    if not name.isprintable():
        return "a name cannot hold NUL or other control characters"
    if name.startswith("-"):
        return "a name cannot begin with '-'"
    return None


def clone_name(url: str) -> str:
    """The folder that a clone gets when the client names none."""
    if "/" not in url and ":" not in url:
        return "repository"
    if _SCHEME.match(url):
        url = re.split("[?#]", url, maxsplit=1)[0]  # it may hold a token
    last = re.split("[/:]", url.rstrip("/"))[-1].removesuffix(".git")
    return last if last not in ("", ".", "..") and "@" not in last else "repository"


def origin(url: str) -> str | None:
    """`https://host:port`, to which alone credentials may be sent; None for what is not of the web."""
    try:
        found = urlsplit(url)
    except ValueError:
        return None
    host = found.netloc.rpartition("@")[2]
    return f"{found.scheme}://{host}" if found.scheme in ("http", "https") and host else None


def has_password(url: str) -> bool:
    return any(":" in match[2] for match in _USERINFO.finditer(url))


class Masker:
    """Takes secrets out of whatever is shown: those it is told of, and all that look like one."""

    def __init__(self, url: str = "", *, secrets: tuple[str, ...] = ()) -> None:
        known = {*secrets, *_secrets(url)}
        # The longest first: a short one may be a part of it.
        self._literal = sorted((each for each in known if len(each) >= _SHORTEST_SECRET), key=len)[::-1]

    def __call__(self, text: str) -> str:
        for secret in self._literal:
            text = text.replace(secret, MASK)
        return _QUERY.sub(rf"\1{MASK}", _USERINFO.sub(_masked_user, text))


def _masked_user(match: re.Match[str]) -> str:
    scheme, user = match[1], match[2]
    # `ssh://git@host` tells nothing, while a user of https is often a token.
    return f"{scheme}{MASK}@" if ":" in user or scheme.lower().startswith("http") else match[0]


def _secrets(url: str) -> set[str]:
    """Passwords that hold "/" or "@" unescaped break the pattern above, and errors as well."""
    scheme = _SCHEME.match(url)
    if not scheme or "@" not in url:
        return set()
    user = url[scheme.end() :].rpartition("@")[0]
    password = user.partition(":")[2]
    if not password:
        return set()
    return {password, unquote(password)}
