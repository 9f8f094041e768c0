"""Addresses of repositories: which are accepted, and what of them is ever shown."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.git.urls import MASK, Masker, clone_name, has_password, name_problem, origin, problem

WORD = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)
# Percent signs and the like included: nobody escapes what they paste.
SECRET = st.text(string.ascii_letters + string.digits + "%!$*()_+,;=~.:@/-", min_size=8, max_size=24)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h.example/a/b/", "b"),
        ("git@h:t/p.git", "p"),
        ("git@h:p", "p"),
        ("https://h.example/a/b.git?token=abc#x", "b"),
        ("https://h.example", "h.example"),
        ("https://user:secret@h.example", "repository"),
        ("plain", "repository"),
        ("/srv/git/x.git/", "x"),
        ("file:///srv/..", "repository"),
        ("../..", "repository"),
        ("https://h.example/.git", "repository"),
    ],
)
def test_a_clone_is_called_as_the_protocol_says(url: str, name: str) -> None:
    assert clone_name(url) == name


@given(url=st.text(max_size=60) | st.text("/:.@gith?#", max_size=30))
def test_the_name_of_a_clone_is_one_harmless_segment(url: str) -> None:
    name = clone_name(url)
    assert name not in ("", ".", "..")
    assert "/" not in name


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example/a.git",
        "http://127.0.0.1:8080/a",
        "ssh://git@h.example:22/a",
        "git@h.example:a/b.git",
        "git://h.example/a",
        "file:///srv/a",
        "/srv/a",
        "./a",
        "https://[::1]/a",
    ],
)
def test_what_the_protocol_allows_is_accepted(url: str) -> None:
    assert problem(url) is None


@given(scheme=st.from_regex(r"[a-z][a-z0-9+.-]{0,10}", fullmatch=True), rest=WORD)
def test_helpers_are_refused_whatever_their_name(scheme: str, rest: str) -> None:
    assert problem(f"{scheme}::{rest}")


@given(st.text(max_size=20))
def test_options_are_refused(text: str) -> None:
    assert problem(f"-{text}")
    assert name_problem(f"-{text}")


@given(user=WORD, password=SECRET, path=WORD)
def test_no_password_of_an_address_survives_the_mask(user: str, password: str, path: str) -> None:
    url = f"https://{user}:{password}@h.example/{path}"
    mask = Masker(url)
    shown = mask(f"fatal: unable to access '{url}/': The requested URL returned error: 500")
    assert password not in shown
    assert MASK in shown
    assert "returned error: 500" in shown


@given(
    name=st.sampled_from(
        [
            "token",
            "access_token",
            "secret",
            "password",
            "X-Amz-Signature",
            "x-amz-credential",
            "private-token",
        ]
    ),
    value=st.text(string.ascii_letters + string.digits + "%-_.~/+=", min_size=8),
)
def test_no_secret_of_a_query_survives_the_mask(name: str, value: str) -> None:
    shown = Masker()(f"cloning https://h.example/a.git?ref=main&{name}={value}&depth=1 now")
    assert f"={value}&" not in shown
    assert f"{name}={MASK}" in shown
    assert "ref=main" in shown
    assert "&depth=1 now" in shown


@given(text=st.text(), secret=SECRET)
def test_a_known_secret_survives_nowhere(text: str, secret: str) -> None:
    assert secret not in Masker(secrets=(secret,))(f"{text}{secret}{text}").replace(MASK, "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://token123@h.example/a", f"https://{MASK}@h.example/a"),
        ("ssh://git@h.example/a", "ssh://git@h.example/a"),
        ("ssh://me:word@h.example/a", f"ssh://{MASK}@h.example/a"),
        ("git@h.example:a/b", "git@h.example:a/b"),
        ("mail a@b.example, see https://h.example/a", "mail a@b.example, see https://h.example/a"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_only_what_may_be_a_secret_is_masked(text: str, shown: str) -> None:
    assert Masker()(text) == shown


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://u:p@h.example:8443/a?x#y", "https://h.example:8443"),
        ("http://[::1]:80/a", "http://[::1]:80"),
        ("ssh://h.example/a", None),
        ("git@h.example:a", None),
        ("/srv/a", None),
        ("https:///a", None),
        ("https://[::1/a", None),
    ],
)
def test_credentials_belong_to_one_place_of_the_web(url: str, place: str | None) -> None:
    assert origin(url) == place


def test_a_user_alone_is_no_password() -> None:
    assert has_password("https://u:p@h.example/a")
    assert not has_password("https://u@h.example/a")
    assert not has_password("https://h.example:80/a")
