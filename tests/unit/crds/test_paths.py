"""Paths of the Kubernetes API, also for names that somebody made up to do harm."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import paths
from yarl import URL


def test_paths_name_what_kubernetes_names_so() -> None:
    assert paths.sandboxes() == "/apis/sandpod.dev/v1alpha1/sandboxes"
    assert paths.sandboxes("team", "hello", "status") == (
        "/apis/sandpod.dev/v1alpha1/namespaces/team/sandboxes/hello/status"
    )
    assert paths.pods("team", "hello") == "/api/v1/namespaces/team/pods/hello"
    assert paths.events("team") == "/api/v1/namespaces/team/events"
    assert paths.nodes("worker") == "/api/v1/nodes/worker"
    assert paths.api_services("v1alpha1.run.sandpod.dev") == (
        "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.run.sandpod.dev"
    )


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_a_step_in_the_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        paths.pods("team", name)
    with pytest.raises(ValueError, match="is not a name"):
        paths.pods(name, "pod")


def test_a_subresource_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the object's name"):
        paths.pods("team", subresource="log")


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_no_name_leads_to_another_resource(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    path = paths.secrets("team", name)
    # As the HTTP client will read it, which resolves dots and decodes what it may.
    segments = URL(f"https://api{path}").raw_path.split("/")
    assert segments[:6] == ["", "api", "v1", "namespaces", "team", "secrets"]
    assert len(segments) == 7
    assert unquote(segments[6]) == name
