"""Derived secrets: the same for ever, different for everything else."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import keys

KEY = bytes(range(32))
BASE32 = set(string.ascii_lowercase + "234567")
KEYS = st.binary(min_size=32, max_size=32)
NAMES = st.text(min_size=1, max_size=63)


def test_the_tokens_of_a_known_key_never_change() -> None:
    # An upgrade that changed them would lock the gateway out of every running sandbox and break every URL.
    assert keys.bind_token(key=KEY, namespace="team", pod_name="hello") == "d6pllrbei6nammrxdqlflyeywnh4sz2j"
    assert (
        keys.credential(key=KEY, namespace="team", pod_uid="0b8d5f0e-1111-4222-8333-444455556666")
        == "2ikwzg63hptsn6gfz6cmod7lrcc6p256"
    )
    assert keys.preview_token(key=KEY, sandbox_uid="5c0ffee0", port=8080, version=1) == "afwg6aw75qlnnjlg3gig"
    assert (
        keys.proof(credential="secret", nonce="0123456789abcdef")
        == "1056073b82c456dd1a3a006b0958cecd1249554297215efec49760331f1fa774"
    )
    assert keys.login_key(key=KEY, kind="code") != keys.login_key(key=KEY, kind="cookie")
    assert (
        keys.login_key(key=KEY, kind="cookie").decode()
        == "hlmnxm6njj2pscjtrgqxunbl7k7fhfrl4bd2ioqqjuizysxizixq"
    )
    assert keys.sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_each_incarnation_of_a_pod_has_another_bind_token() -> None:
    tokens = {
        keys.bind_token(key=KEY, namespace="team", pod_name="hello", nonce=nonce) for nonce in ("", "a", "b")
    }
    assert len(tokens) == 3


@given(KEYS, NAMES, NAMES)
def test_a_bind_token_is_32_characters_that_fit_anywhere(key: bytes, namespace: str, name: str) -> None:
    token = keys.bind_token(key=key, namespace=namespace, pod_name=name)
    assert len(token) == 32
    assert set(token) <= BASE32


@given(KEYS, NAMES, st.integers(1024, 65535), st.integers(1, 2**31 - 1))
def test_a_preview_token_is_20_characters_of_a_dns_label(
    key: bytes, uid: str, port: int, version: int
) -> None:
    token = keys.preview_token(key=key, sandbox_uid=uid, port=port, version=version)
    assert len(token) == 20
    assert set(token) <= BASE32


@given(KEYS, NAMES, NAMES, st.integers(1, 62))
def test_names_that_read_alike_when_joined_have_different_tokens(
    key: bytes, a: str, b: str, cut: int
) -> None:
    joined = a + b
    split = (joined[:cut], joined[cut:])
    one = keys.bind_token(key=key, namespace=a, pod_name=b)
    other = keys.bind_token(key=key, namespace=split[0], pod_name=split[1])
    assert (one == other) == ((a, b) == split)


@given(KEYS, NAMES, st.integers(1024, 65535), st.integers(1, 1000))
def test_each_port_and_each_version_has_a_token_of_its_own(
    key: bytes, uid: str, port: int, version: int
) -> None:
    def token(port: int, version: int) -> str:
        return keys.preview_token(key=key, sandbox_uid=uid, port=port, version=version)

    assert len({token(port, version), token(port + 1, version), token(port, version + 1)}) == 3


@given(KEYS, NAMES)
def test_a_secret_of_one_kind_never_passes_for_another(key: bytes, name: str) -> None:
    credential = keys.credential(key=key, namespace=name, pod_uid=name)
    preview = keys.preview_token(key=key, sandbox_uid=name, port=8080, version=1)
    bind = keys.bind_token(key=key, namespace=name, pod_name=name)
    assert len({credential[:20], preview, bind[:20]}) == 3


@given(KEYS, KEYS, NAMES)
def test_another_installation_has_other_secrets(one: bytes, other: bytes, uid: str) -> None:
    def secret(key: bytes) -> str:
        return keys.credential(key=key, namespace="team", pod_uid=uid)

    assert (secret(one) == secret(other)) == (one == other)


@given(KEYS, NAMES, NAMES, NAMES)
def test_a_pod_named_from_another_namespace_has_another_credential(
    key: bytes, one: str, other: str, uid: str
) -> None:
    theirs = keys.credential(key=key, namespace=one, pod_uid=uid)
    mine = keys.credential(key=key, namespace=other, pod_uid=uid)
    assert (theirs == mine) == (one == other)


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"has {length} bytes and must have 32"):
        keys.credential(key=b"k" * length, namespace="n", pod_uid="u")
