"""The paths of the Kubernetes API that operator and gateway call, built in one place. Names are escaped and
checked, because some of them come from requests: `..` in a name must not lead to another resource.
"""

from urllib.parse import quote

from .names import GROUP, SANDBOXES, VERSION

CORE = "/api/v1"
OURS = f"/apis/{GROUP}/{VERSION}"


def sandboxes(namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
    return build(OURS, SANDBOXES, namespace=namespace, name=name, subresource=subresource)


def pods(namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
    return build(CORE, "pods", namespace=namespace, name=name, subresource=subresource)


def events(namespace: str | None = None, name: str | None = None) -> str:
    return build(CORE, "events", namespace=namespace, name=name)


def secrets(namespace: str | None = None, name: str | None = None) -> str:
    return build(CORE, "secrets", namespace=namespace, name=name)


def config_maps(namespace: str | None = None, name: str | None = None) -> str:
    return build(CORE, "configmaps", namespace=namespace, name=name)


def nodes(name: str | None = None) -> str:
    return build(CORE, "nodes", name=name)


def api_services(name: str | None = None) -> str:
    return build("/apis/apiregistration.k8s.io/v1", "apiservices", name=name)


def subject_access_reviews() -> str:
    return "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def token_reviews() -> str:
    return "/apis/authentication.k8s.io/v1/tokenreviews"


def version() -> str:
    return "/version"


def build(
    prefix: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
) -> str:
    """`/prefix[/namespaces/NS]/plural[/NAME[/SUBRESOURCE]]`"""
    if subresource is not None and name is None:
        raise ValueError(f"a sub-resource of {plural} needs the object's name")
    parts = [prefix]
    if namespace is not None:
        parts += ["namespaces", _segment(namespace)]
    parts.append(plural)
    if name is not None:
        parts.append(_segment(name))
    if subresource is not None:
        parts.append(_segment(subresource))
    return "/".join(parts)


def _segment(text: str) -> str:
    # Quoting leaves dots alone, and a URL library then resolves `.` and `..` as steps in the path.
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not a name")
    return quote(text, safe="")
