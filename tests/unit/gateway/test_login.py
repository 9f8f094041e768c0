"""Logins at private previews: what is signed, and that each link is used once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_gateway.errors import Invalid, TooMany
from sandpod_gateway.identity import Identity
from sandpod_gateway.login import MOST, Kind, Login, Seals
from sandpod_gateway.preview_headers import local_path
from sandpod_gateway.routes import ExposedPort, Route
from sandpod_gateway.spent import MOST as MOST_SPENT
from sandpod_gateway.spent import SKEW_SECONDS, spend
from sandpod_gateway.targets import Target

JANE = Identity(user="jane", uid="j", groups=("a", "b"), extra=(("scopes", ("x", "y")),))
LOGIN = Login(
    sandbox_uid="uid", port=8080, token_version=1, identity=JANE, expires=1060, nonce="of-this-link"
)
SEALS = Seals(key=b"k" * 32)
texts = st.text(max_size=20)


@given(
    identity=st.builds(
        Identity,
        user=texts,
        uid=texts,
        groups=st.lists(texts, max_size=4).map(tuple),
        extra=st.lists(st.tuples(texts, st.lists(texts, max_size=2).map(tuple)), max_size=2).map(tuple),
    ),
    kind=st.sampled_from(Kind),
)
def test_what_is_sealed_is_opened_as_it_was(identity: Identity, kind: Kind) -> None:
    login = replace(LOGIN, identity=identity)
    assert SEALS.open(kind, SEALS.seal(kind, login), now=1059) == login


def test_a_login_ends_when_it_says() -> None:
    sealed = SEALS.seal(Kind.CODE, LOGIN)
    assert SEALS.open(Kind.CODE, sealed, now=1060) is None


def test_nothing_opens_what_is_of_another_kind_or_another_installation() -> None:
    sealed = SEALS.seal(Kind.CODE, LOGIN)
    assert SEALS.open(Kind.COOKIE, sealed, now=0) is None
    assert Seals(key=b"l" * 32).open(Kind.CODE, sealed, now=0) is None


@given(data=st.data())
def test_whatever_is_changed_about_it_breaks_the_seal(data: st.DataObject) -> None:
    sealed = SEALS.seal(Kind.COOKIE, LOGIN)
    place = data.draw(st.integers(min_value=0, max_value=len(sealed) - 1))
    other = data.draw(st.characters().filter(lambda character: character != sealed[place]))
    assert SEALS.open(Kind.COOKIE, sealed[:place] + other + sealed[place + 1 :], now=0) is None


@given(st.text())
def test_no_text_at_all_is_an_error(text: str) -> None:
    assert SEALS.open(Kind.COOKIE, text, now=0) is None


def test_who_is_in_more_groups_than_a_cookie_holds_is_told_to_send_a_token() -> None:
    groups = tuple(f"group-{n}" for n in range(1000))
    with pytest.raises(Invalid, match="bearer token"):
        SEALS.seal(Kind.CODE, replace(LOGIN, identity=Identity(user="jane", groups=groups)))
    assert SEALS.open(Kind.CODE, "a" * (MOST + 1), now=0) is None


@pytest.mark.parametrize("other", [{"sandbox_uid": "other"}, {"port": 8081}, {"token_version": 2}])
def test_it_is_for_one_port_of_one_sandbox_until_its_token_is_rotated(other: dict[str, str | int]) -> None:
    port = ExposedPort(port=8080, private=True, token_version=1)
    target = Target(key=("default", "hello"), route=Route(uid="uid", ports=(port,)), port=port)
    assert LOGIN.opens(target)
    changed = {"sandbox_uid": "uid", "port": 8080, "token_version": 1} | other
    assert not Login(identity=JANE, expires=1060, **changed).opens(target)  # type: ignore[arg-type]


def test_a_link_that_was_used_is_remembered_for_as_long_as_any_clock_takes_it() -> None:
    first = spend("", "one", expires=1060, now=1000, longest=60)
    assert first == "one@1060"
    assert spend(first, "one", expires=1060, now=1000, longest=60) is None
    both = spend(first, "two", expires=1100, now=1060 + SKEW_SECONDS - 1, longest=60)
    assert both == "one@1060,two@1100"
    assert spend(both, "three", expires=1420, now=1060 + SKEW_SECONDS, longest=60) == "two@1100,three@1420"


@given(st.text(alphabet="ab@,19 \n\u0661", max_size=60))
def test_what_others_write_into_the_annotation_does_no_harm(text: str) -> None:
    written = spend(text, "of-ours", expires=1060, now=1000, longest=60)
    assert written is not None
    assert written.endswith("of-ours@1060")
    assert spend(written, "of-ours", expires=1060, now=1000, longest=60) is None


def test_logins_of_a_few_minutes_have_a_bound_which_nobody_can_make_last() -> None:
    full = ",".join(f"n{n}@1060" for n in range(MOST_SPENT))
    with pytest.raises(TooMany):
        spend(full, "one-more", expires=1060, now=1000, longest=60)
    for_ever = ",".join(f"n{n}@99999999999" for n in range(MOST_SPENT))
    assert spend(for_ever, "mine", expires=1060, now=1000, longest=60) == "mine@1060"


@given(st.text())
def test_a_redirect_stays_on_its_host(text: str) -> None:
    path = local_path(text)
    assert path.startswith("/")
    assert path[1:2] not in ("/", "\\")
    assert path.isascii()
    assert path.isprintable()


@pytest.mark.parametrize("path", ["/", "/a/b?c=%20d&e#f", "/..//x", "/@user:pass"])
def test_a_path_is_redirected_to_as_it_is(path: str) -> None:
    assert local_path(path) == path
