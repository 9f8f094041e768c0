"""What one wants to read when an end-to-end test failed: the objects, what was said of them, who did what."""

from tests.support.cluster import SYSTEM, kubectl

LOOKS = {
    "sandboxes and pods": ["get", "sandboxes,pods", "-o", "wide"],
    "sandboxes": ["get", "sandboxes", "-o", "yaml"],
    "pods": ["describe", "pods"],
    "events": ["get", "events", "--sort-by=.metadata.resourceVersion"],
}


def of_namespace(namespace: str) -> str:
    """Everything about the sandboxes of a namespace."""
    found = ((title, kubectl("-n", namespace, *args, check=False)) for title, args in LOOKS.items())
    return "\n".join(f"## {title}\n{done.stdout}{done.stderr}" for title, done in found)


def of_control_plane() -> str:
    """The last words of operator and gateway."""
    pods = kubectl("-n", SYSTEM, "get", "pods", "-o", "wide", check=False).stdout
    logs = (_log(part) for part in ("operator", "gateway"))
    return "\n".join([pods, *logs])


def _log(part: str) -> str:
    done = kubectl("-n", SYSTEM, "logs", f"deployment/sandpod-{part}", "--tail=25", check=False)
    return f"## {part}\n{done.stdout}{done.stderr}"
