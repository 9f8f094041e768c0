"""Which permission a request needs, by its method and the runtime's path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_gateway.errors import BadRequest, NotFound
from sandpod_gateway.permissions import Permission, permission_for

TABLE = [
    ("POST", "/api/execute", "create", "exec"),
    ("POST", "/api/execute/stream", "create", "exec"),
    ("POST", "/api/execute/code", "create", "exec"),
    ("POST", "/api/session/create", "create", "exec"),
    ("GET", "/api/session/list", "get", "exec"),
    ("GET", "/api/ping", "get", "exec"),
    ("HEAD", "/api/ping", "get", "exec"),
    ("GET", "/api/version", "get", "exec"),
    ("GET", "/api/lifecycle", "get", "exec"),
    ("GET", "/api/contexts", "get", "exec"),
    ("DELETE", "/api/contexts/c1", "delete", "exec"),
    ("POST", "/api/read", "create", "files"),
    ("POST", "/api/read/stream", "create", "files"),
    ("POST", "/api/write", "create", "files"),
    ("POST", "/api/list-files", "create", "files"),
    ("POST", "/api/watch/check", "create", "files"),
    ("POST", "/api/backup/create", "create", "files"),
    ("GET", "/api/files/etc/passwd", "get", "files"),
    ("PUT", "/api/file", "create", "files"),
    ("POST", "/api/git/checkout", "create", "exec"),
    ("GET", "/api/files/archive", "get", "files"),
    ("HEAD", "/api/files/raw", "get", "files"),
    ("PUT", "/api/files/raw", "create", "files"),
    ("GET", "/api/ports", "get", "ports"),
    ("POST", "/api/port-watch", "create", "ports"),
    ("POST", "/api/environment", "create", "exec"),
    ("GET", "/api/system/stats/stream", "get", "exec"),
    ("GET", "/metrics", "get", "exec"),
    ("POST", "/api/process/start", "create", "processes"),
    ("GET", "/api/process/list", "get", "processes"),
    ("GET", "/api/process/p1/logs", "get", "processes"),
    ("DELETE", "/api/process/kill-all", "delete", "processes"),
    ("POST", "/api/terminal/create", "create", "terminals"),
    ("GET", "/", "get", "exec"),
    ("PATCH", "/something/else", "create", "exec"),
    ("OPTIONS", "/api/read", "create", "files"),
    # The runtime takes an escape as it stands: these are none of its files' or terminals' paths.
    ("POST", "/api/%72ead", "create", "exec"),
    ("POST", "/api%2Fterminal/create", "create", "exec"),
    ("POST", "//api//read", "create", "files"),
]


@pytest.mark.parametrize(("method", "path", "verb", "subresource"), TABLE)
def test_each_path_of_the_runtime_has_its_permission(
    method: str, path: str, verb: str, subresource: str
) -> None:
    assert permission_for(method=method, path=path, upgrade=False) == Permission(verb, subresource)


@pytest.mark.parametrize("path", ["/ws/pty", "/ws/terminal"])
def test_a_viewer_who_may_get_cannot_open_a_terminal(path: str) -> None:
    assert permission_for(method="GET", path=path, upgrade=True) == Permission("create", "terminals")


@pytest.mark.parametrize(
    "path",
    ["/api/bind", "/api/bind/", "//api/bind", "/api//bind", "/api/%62ind", "/%61pi%2Fbind", "/api/bind/x"],
)
def test_the_bind_is_never_reachable_however_it_is_spelt(path: str) -> None:
    with pytest.raises(NotFound):
        permission_for(method="POST", path=path, upgrade=False)


@pytest.mark.parametrize("path", ["/api/lifecycle", "/api/lifecycle/lease", "//api/%6cifecycle/sleep"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
def test_who_may_run_commands_may_not_for_that_reason_decide_when_it_sleeps(path: str, method: str) -> None:
    with pytest.raises(NotFound):
        permission_for(method=method, path=path, upgrade=False)


@pytest.mark.parametrize(
    "path", ["/..", "/api/../read", "/api/./read", "/%2e%2e/x", "/api/%2E%2e%2fread", "/api/.%2e/x", "/a/%2e"]
)
def test_a_path_that_climbs_is_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        permission_for(method="GET", path=path, upgrade=False)


@given(st.text())
def test_every_path_gets_a_permission_or_a_refusal(path: str) -> None:
    try:
        permission = permission_for(method="GET", path=f"/{path}", upgrade=False)
    except (BadRequest, NotFound):
        return
    assert permission.subresource in {"exec", "files", "processes", "terminals"}
