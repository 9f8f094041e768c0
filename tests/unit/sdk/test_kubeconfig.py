"""Which cluster, namespace and identity the kubeconfig files lead to."""

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sandpod import _kubeconfig
from sandpod._kubeconfig import load, merge
from sandpod._target import in_cluster
from sandpod.errors import ConfigError

Json = dict[str, Any]


def config(*, context: str = "", server: str = "https://a:6443", user: Json | None = None) -> Json:
    name = context or "c"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_the_current_context_decides(tmp_path: Path) -> None:
    target = load(kubeconfig=write(tmp_path / "k", config(context="one", user={"token": "t"})), environ={})
    assert (target.server, target.namespace, target.token, target.context) == (
        "https://a:6443",
        "ns-one",
        "t",
        "one",
    )


def test_flags_beat_the_context(tmp_path: Path) -> None:
    path = write(tmp_path / "k", config(context="one", user={"as": "old", "as-groups": ["g"]}))
    target = load(
        kubeconfig=path, namespace="mine", impersonate="jane", impersonate_groups=["dev", "ops"], environ={}
    )
    assert target.namespace == "mine"
    assert target.impersonate == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
    )


def test_without_a_namespace_it_is_default(tmp_path: Path) -> None:
    content = config(context="one")
    del content["contexts"][0]["context"]["namespace"]
    assert load(kubeconfig=write(tmp_path / "k", content), environ={}).namespace == "default"


def test_impersonation_in_the_kubeconfig_counts(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": {"reason": ["a", "b"]}}
    target = load(kubeconfig=write(tmp_path / "k", config(context="one", user=user)), environ={})
    assert target.impersonate == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-reason", "a"),
        ("Impersonate-Extra-reason", "b"),
    )


def test_of_several_files_the_first_to_say_something_counts(tmp_path: Path) -> None:
    one = write(tmp_path / "one", config(server="https://first", user={"token": "first"}))
    two = write(tmp_path / "two", config(context="c", server="https://second", user={"token": "second"}))
    three = write(tmp_path / "three", config(context="other", server="https://third"))
    paths = [str(one), str(tmp_path / "missing"), "", str(two), str(three)]
    target = load(environ={"KUBECONFIG": os.pathsep.join(paths)})
    assert (target.context, target.server, target.token) == ("c", "https://first", "first")
    other = load(context="other", environ={"KUBECONFIG": os.pathsep.join(paths)})
    assert other.server == "https://third"


def test_an_entry_of_a_later_file_adds_nothing_to_one_of_the_same_name(tmp_path: Path) -> None:
    one = write(tmp_path / "one", config(context="c"))
    two = write(tmp_path / "two", config(context="c", user={"token": "second"}))
    target = load(environ={"KUBECONFIG": f"{one}{os.pathsep}{two}"})
    assert target.token == ""


_names = st.sampled_from("abcd")
_files = st.lists(
    st.fixed_dictionaries(
        {
            "current-context": st.one_of(st.just(""), _names),
            **{
                part: st.dictionaries(_names, st.fixed_dictionaries({"x": st.integers()}))
                for part in ("clusters", "contexts", "users")
            },
        }
    ),
    max_size=5,
)


@given(_files)
def test_merging_is_first_come_first_served_for_every_name(files: list[Json]) -> None:
    merged = merge(files)
    for part in ("clusters", "contexts", "users"):
        names = {name for each in files for name in each[part]}
        assert set(merged[part]) == names
        for name in names:
            assert merged[part][name] == next(each[part][name] for each in files if name in each[part])
    said = [each["current-context"] for each in files if each["current-context"]]
    assert merged["current-context"] == (said[0] if said else "")


@given(_files, st.integers(0, 5))
def test_it_does_not_matter_how_a_list_is_grouped(files: list[Json], at: int) -> None:
    assert merge([merge(files[:at]), merge(files[at:])]) == merge(files)


def test_relative_paths_are_meant_from_the_files_own_folder(tmp_path: Path) -> None:
    user = {
        "client-certificate": "me.crt",
        "client-key": "/abs/me.key",
        "tokenFile": "sub/token",
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./bin/login"},
    }
    content = config(context="one", user=user)
    content["clusters"][0]["cluster"]["certificate-authority"] = "../ca.crt"
    target = load(kubeconfig=write(tmp_path / "deep" / "k", content), environ={})
    folder = tmp_path / "deep"
    assert target.ca_file == str(folder / "../ca.crt")
    assert target.certificate_file == str(folder / "me.crt")
    assert target.key_file == "/abs/me.key"
    assert target.token_file == str(folder / "sub/token")
    assert target.plugin is not None
    assert target.plugin.command == str(folder / "bin/login")


def test_a_plugin_without_a_path_is_looked_up_like_any_program(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": None,
        "env": None,
    }
    target = load(kubeconfig=write(tmp_path / "k", config(context="one", user={"exec": plugin})), environ={})
    assert target.plugin is not None
    assert (target.plugin.command, target.plugin.args, target.plugin.interactive_mode) == (
        "aws",
        (),
        "IfAvailable",
    )


def test_embedded_data_is_decoded(tmp_path: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\n"
    content = config(context="one", user={"client-certificate-data": base64.b64encode(pem.encode()).decode()})
    assert load(kubeconfig=write(tmp_path / "k", content), environ={}).certificate_data == pem


SENSELESS: list[tuple[Json, str]] = [
    ({"current-context": ""}, "there are: one"),
    ({"current-context": "gone"}, "There are: one"),
    ({"clusters": []}, "not among the kubeconfig's clusters"),
    ({"users": []}, "not among the kubeconfig's users"),
    ({"clusters": [{"name": "one", "cluster": {}}]}, "no server address"),
    ({"clusters": "x"}, "is not a kubeconfig"),
    ({"clusters": ["x"]}, "is not a kubeconfig"),
    ({"clusters": [{"name": "one", "cluster": ["x"]}]}, "is not a kubeconfig"),
    ({"users": [{"name": "one"}, {"name": "one"}]}, "two users named 'one'"),
    ({"users": [{"name": "one", "user": {"client-key-data": "%%"}}]}, "client-key-data is not base64"),
    ({"users": [{"name": "one", "user": {"auth-provider": {"name": "gcp"}}}]}, "auth-provider"),
    ({"users": [{"name": "one", "user": {"exec": {"command": "x", "apiVersion": "v1"}}}]}, "speaks v1"),
    (
        {"users": [{"name": "one", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}}]},
        "no command",
    ),
    ({"users": [{"name": "one", "user": {"exec": "x"}}]}, "malformed"),
    ({"users": [{"name": "one", "user": {"as-user-extra": ["x"]}}]}, "malformed"),
    (
        {
            "clusters": [
                {
                    "name": "one",
                    "cluster": {
                        "server": "https://a",
                        "insecure-skip-tls-verify": True,
                        "certificate-authority": "x",
                    },
                }
            ]
        },
        "Remove one of them",
    ),
]


@pytest.mark.parametrize(("change", "fragment"), SENSELESS)
def test_a_kubeconfig_that_makes_no_sense_is_told_in_a_sentence(
    tmp_path: Path, change: Json, fragment: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(kubeconfig=write(tmp_path / "k", {**config(context="one"), **change}), environ={})
    assert fragment in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "- x", "text", "\t", "\x00"])
def test_a_file_that_is_something_else_is_told_so(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="is not"):
        load(kubeconfig=write(tmp_path / "k", text), environ={})


_KEYS = [
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "extensions",
    "name",
    "extension",
    "client-key-data",
    "token",
    "exec",
    "apiVersion",
    "command",
    "args",
    "env",
    "as",
    "as-groups",
    "as-user-extra",
    "cluster",
    "user",
    "namespace",
]
_junk = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.sampled_from(["x", "client.authentication.k8s.io/v1"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6)
    ),
    max_leaves=20,
)
_entry = st.dictionaries(st.sampled_from(_KEYS), _junk, max_size=8)


@given(_entry, _entry, _junk)
def test_no_content_of_a_context_crashes_the_loader(cluster: Json, user: Json, namespace: Any) -> None:
    merged: Json = {
        "current-context": "one",
        "clusters": {"one": {"server": "https://a", **cluster}},
        "users": {"one": user},
        "contexts": {"one": {"cluster": "one", "user": "one", "namespace": namespace}},
    }
    with contextlib.suppress(ConfigError):
        assert _kubeconfig.resolved(merged, context=None).server


def test_no_file_at_all_says_where_one_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ={"HOME": str(tmp_path)})
    assert str(tmp_path / ".kube" / "config") in str(caught.value)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(kubeconfig=tmp_path / "gone", environ={})


def test_in_a_pod_its_service_account_is_who_we_are(tmp_path: Path) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"the {name}\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    target = in_cluster(environ=environ, folder=tmp_path)
    assert target is not None
    assert (target.server, target.namespace) == ("https://[fd00::1]:443", "the namespace")
    assert (target.token_file, target.ca_file) == (str(tmp_path / "token"), str(tmp_path / "ca.crt"))


def test_outside_of_a_pod_there_is_no_such_thing(tmp_path: Path) -> None:
    assert in_cluster(environ={}, folder=tmp_path) is None


def test_json_is_yaml_enough(tmp_path: Path) -> None:
    path = write(tmp_path / "k", json.dumps(config(context="one")))
    assert load(kubeconfig=path, environ={}).context == "one"
