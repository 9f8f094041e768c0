"""What the doors take for a sandbox's path: whatever is accepted leads to that sandbox and nowhere else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import paths
from sandpod_gateway.subresources import SANDBOX, target_of

PATH = re.compile(rf"/v1/{SANDBOX}")

PIECES = st.sampled_from(
    [*"/.-%?#;aA1é\0\n", "..", "%2f", "%2e", "//", "namespaces", "sandboxes", "default", "hello", "proxy"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_no_spelling_of_a_name_leads_to_another_path(namespace: str, name: str) -> None:
    found = PATH.fullmatch(f"/v1/namespaces/{namespace}/sandboxes/{name}/proxy/api/x")
    if found is None:
        return
    asked = paths.sandboxes(found["namespace"], found["name"])
    segments = asked.split("/")
    # Nothing had to be escaped, and nothing is a step.
    assert segments[-4:] == ["namespaces", found["namespace"], "sandboxes", found["name"]]
    assert not {"", ".", ".."} & set(segments[1:])
    assert found["rest"].startswith("/")


@pytest.mark.parametrize(
    ("namespace", "name", "is_one"),
    [
        ("default", "hello", True),
        ("d", "h", True),
        ("default", "a.b.c", True),
        ("a" * 63, "a" * 253, True),
        ("a" * 64, "hello", False),
        ("default", "a" * 254, False),
        ("de.fault", "hello", False),
        ("default", "a..b", False),
        ("default", "-a", False),
        ("default", "a-", False),
        ("default", "hello\n", False),
    ],
)
def test_names_are_what_kubernetes_calls_names(namespace: str, name: str, is_one: bool) -> None:
    assert bool(PATH.fullmatch(f"/v1/namespaces/{namespace}/sandboxes/{name}/wake")) is is_one


@pytest.mark.parametrize(
    ("rest", "query", "target"),
    [
        ("/proxy", "", "/"),
        ("/proxy/", "", "/"),
        ("/proxy/api/execute", "?a=b", "/api/execute?a=b"),
        ("/proxy//evil.example/x", "", "//evil.example/x"),
        ("/proxy/a%2Fb", "?", "/a%2Fb?"),
        ("/proxy/proxy/x", "", "/proxy/x"),
    ],
)
def test_what_follows_proxy_is_passed_on_as_it_is(rest: str, query: str, target: str) -> None:
    assert target_of(rest, query) == target
