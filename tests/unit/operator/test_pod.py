"""The pod that is made from a spec."""

import re
from dataclasses import replace

import pytest
from sandpod_crds.keys import bind_token, sha256_hex
from sandpod_crds.models import Sandbox
from sandpod_operator.objects import Json
from sandpod_operator.resources.confine import strict_context
from sandpod_operator.resources.pod import bind_env, spec_hash
from sandpod_operator.resources.requirements import requirements
from sandpod_operator.resources.runtime_mount import has_runtime, image_volumes_everywhere
from sandpod_operator.settings import Installation, RuntimeMount

from tests.support.operator_objects import INSTALLATION, KEY, UID, case_of, installation, sandbox

DEFAULTS: dict[str, dict[str, str | int]] = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "8Gi"},
}


def build(spec: Json | None = None, *, within: Installation = INSTALLATION) -> Json:
    return case_of(sandbox(spec), within=within).wanted_pod


def container(pod: Json) -> Json:
    return next(each for each in pod["spec"]["containers"] if each["name"] == "sandbox")


def test_an_empty_spec_makes_the_smallest_pod_without_any_volume() -> None:
    token = bind_token(key=INSTALLATION.key, namespace=KEY.namespace, pod_name=KEY.name)
    made = build()

    assert made["spec"] == {
        "containers": [
            {
                "name": "sandbox",
                "image": "sandpod/sandbox:0.1.0",
                "imagePullPolicy": "IfNotPresent",
                "command": ["/opt/sandpod/bin/sandpod-runtime"],
                "env": [{"name": "SANDPOD_BIND_SHA256", "value": sha256_hex(token)}],
                "ports": [{"name": "control", "containerPort": 3000}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def test_no_secret_is_in_the_pod() -> None:
    token = bind_token(key=INSTALLATION.key, namespace=KEY.namespace, pod_name=KEY.name)
    text = str(build({"env": [{"name": "PASSWORD", "value": "hunter2"}]}))

    assert token not in text
    # Plain values travel in the bind.
    assert "hunter2" not in text


def test_the_pod_is_the_sandbox_s_own() -> None:
    metadata = build()["metadata"]

    assert (metadata["name"], metadata["namespace"]) == (KEY.name, KEY.namespace)
    owner = metadata["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Sandbox", UID, True)
    assert owner["blockOwnerDeletion"] is False


def test_labels_of_the_user_do_not_replace_ours() -> None:
    stolen = {"app.kubernetes.io/managed-by": "me", "sandpod.dev/sandbox-uid": "other", "team": "red"}
    template = {"metadata": {"labels": stolen, "annotations": {"note": "x", "sandpod.dev/spec-hash": "0"}}}
    metadata = build({"podTemplate": template})["metadata"]

    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "sandpod"
    assert metadata["labels"]["sandpod.dev/sandbox-uid"] == UID
    assert metadata["labels"]["team"] == "red"
    assert metadata["annotations"]["note"] == "x"
    assert metadata["annotations"]["sandpod.dev/spec-hash"] != "0"


def test_no_key_of_ours_is_taken_from_the_user() -> None:
    # Each says something that the operator would believe.
    theirs = {"sandpod.dev/claimed-at": "2026-11-18T12:00:00Z", "sandpod.dev/template": "[" * 100_000}
    template = {"metadata": {"labels": {"sandpod.dev/pool-uid": "other"}, "annotations": theirs}}
    metadata = build({"podTemplate": template})["metadata"]

    assert not theirs.items() & metadata["annotations"].items()
    assert "sandpod.dev/pool-uid" not in metadata["labels"]


def test_values_from_secrets_are_the_kubelet_s_and_plain_ones_the_bind_s() -> None:
    spec = {
        "env": [
            {"name": "PLAIN", "value": "1"},
            {"name": "EMPTY"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "envFrom": [{"prefix": "DB_", "secretRef": {"name": "db"}}],
    }
    made = container(build(spec))

    assert made["env"][0] == {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    assert [each["name"] for each in made["env"]] == ["TOKEN", "SANDPOD_BIND_SHA256"]
    assert made["envFrom"] == [{"prefix": "DB_", "secretRef": {"name": "db"}}]
    assert bind_env(Sandbox.model_validate(sandbox(spec)).spec) == {"PLAIN": "1", "EMPTY": ""}


def test_the_fields_of_the_spec_are_in_the_pod() -> None:
    spec = build(
        {
            "runtimeClassName": "gvisor",
            "priorityClassName": "batch",
            "serviceAccountName": "builder",
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "user": 4321,
        }
    )["spec"]

    assert spec["runtimeClassName"] == "gvisor"
    assert spec["priorityClassName"] == "batch"
    assert spec["serviceAccountName"] == "builder"
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) == (4321, 4321)


def test_strict_has_a_user_namespace_and_may_be_root_in_it() -> None:
    spec = build({"isolation": "Strict", "user": "root"})["spec"]

    assert spec["hostUsers"] is False
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["securityContext"]["runAsNonRoot"] is False
    container = spec["containers"][0]
    assert container["command"][-2:] == ["--strict", "0"]
    assert container["securityContext"] == strict_context(0)


def test_root_without_a_user_namespace_is_never_given() -> None:
    # The CRD lets it through when a template might still say Strict.
    spec = build({"templateRef": {"name": "t"}, "user": "root"})["spec"]

    assert spec["securityContext"]["runAsUser"] == 1000


def test_a_user_s_image_follows_kubernetes_pull_policy_and_ours_the_chart_s() -> None:
    within = installation(imagePullPolicy="Never", imagePullSecrets=["reg"])

    assert container(build(within=within))["imagePullPolicy"] == "Never"
    assert "imagePullPolicy" not in container(build({"image": "busybox:1"}, within=within))
    assert build(within=within)["spec"]["imagePullSecrets"] == [{"name": "reg"}]


def test_another_image_gets_the_runtime_from_an_image_volume() -> None:
    spec = build({"image": "busybox:1"})["spec"]

    assert spec["volumes"] == [
        {
            "name": "sandpod-runtime",
            "image": {"reference": "sandpod/runtime:0.1.0", "pullPolicy": "IfNotPresent"},
        },
        {"name": "sandpod-workspace", "emptyDir": {}},
    ]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": "sandpod-runtime", "mountPath": "/opt/sandpod", "readOnly": True, "subPath": "opt/sandpod"},
        {"name": "sandpod-workspace", "mountPath": "/workspace"},
    ]
    assert "initContainers" not in spec


def test_or_from_an_init_container_that_copies_it() -> None:
    within = replace(INSTALLATION, runtime_mount=RuntimeMount.INIT_CONTAINER)
    theirs = {"spec": {"initContainers": [{"name": "theirs", "image": "x"}]}}
    spec = build({"image": "busybox:1", "podTemplate": theirs}, within=within)["spec"]

    assert [each["name"] for each in spec["initContainers"]] == ["sandpod-runtime", "theirs"]
    copier = spec["initContainers"][0]
    assert copier["command"] == ["/opt/sandpod/bin/sandpod-runtime", "--copy-to", "/mnt/sandpod"]
    assert copier["volumeMounts"] == [{"name": "sandpod-runtime", "mountPath": "/mnt/sandpod"}]
    assert copier["securityContext"]["allowPrivilegeEscalation"] is False
    assert spec["volumes"][0] == {"name": "sandpod-runtime", "emptyDir": {}}


def test_a_workspace_of_the_template_s_own_is_not_covered() -> None:
    mount = {"name": "mine", "mountPath": "/workspace"}
    theirs = {"spec": {"containers": [{"name": "sandbox", "volumeMounts": [mount]}]}}
    made = container(build({"image": "busybox:1", "podTemplate": theirs}))

    assert [each["name"] for each in made["volumeMounts"]] == ["mine", "sandpod-runtime"]


@pytest.mark.parametrize(
    ("image", "has_it"),
    [("sandpod/sandbox:0.1.0", True), ("reg.example.com/team/box:7", True), ("busybox:1", False)],
)
def test_images_that_have_the_runtime_are_known_by_their_names(image: str, has_it: bool) -> None:
    settings = installation(builtInImages=["reg.example.com/team/box:*"]).settings

    assert has_runtime(image, settings) is has_it


def test_resources_are_completed_by_the_defaults() -> None:
    assert made_of(None) == DEFAULTS
    assert made_of({"limits": {"memory": "64Mi"}})["limits"]["cpu"] == "2"


def test_no_default_contradicts_what_the_user_says() -> None:
    # The default request of memory, 128Mi, is above the user's limit; the default limit of CPU below the
    # request.
    made = made_of({"limits": {"memory": "64Mi"}, "requests": {"cpu": 3}})

    assert made["requests"] == {"cpu": 3, "memory": "64Mi"}
    assert made["limits"] == {"cpu": 3, "memory": "64Mi", "ephemeral-storage": "8Gi"}


def made_of(resources: Json | None) -> Json:
    spec = Sandbox.model_validate(sandbox({"resources": resources} if resources else {})).spec
    return requirements(spec.resources, defaults=DEFAULTS)


def test_the_hash_is_of_what_takes_a_new_pod() -> None:
    def hashed(spec: Json) -> str:
        return spec_hash(Sandbox.model_validate(sandbox(spec)).spec)

    assert re.fullmatch(r"[0-9a-f]{16}", hashed({}))
    assert hashed({"isolation": "Standard"}) == hashed({})
    assert hashed({"sleepAfter": "5m", "ports": [{"port": 8080}]}) == hashed({})
    assert hashed({"image": "x:1"}) != hashed({})
    assert hashed({"env": [{"name": "A", "value": "1"}]}) != hashed({"env": [{"name": "A", "value": "2"}]})


def test_an_upgrade_of_the_operator_alone_is_no_other_pod() -> None:
    newer = Installation(
        settings=INSTALLATION.settings,
        version="9",
        key=INSTALLATION.key,
        runtime_mount=INSTALLATION.runtime_mount,
    )
    made, again = build(), build(within=newer)

    assert made["metadata"]["annotations"] == again["metadata"]["annotations"]
    assert again["metadata"]["labels"]["app.kubernetes.io/version"] == "9"


@pytest.mark.parametrize(
    ("server", "kubelet", "runtime", "everywhere"),
    [
        ("36", "v1.36.4", "containerd://2.3.4", True),
        ("35", "v1.35.0", "cri-o://1.35.1", True),
        ("34", "v1.34.1", "containerd://2.1.0", False),
        ("36", "v1.33.1", "containerd://2.1.0", False),
        ("36", "v1.36.4", "containerd://1.7.20", False),
        ("36+", "v1.36.4-eks-1", "containerd://2.1.1+unknown", True),
        ("36", "v1.36.4", "docker://27", False),
        ("", "", "", False),
    ],
)
def test_image_volumes_need_every_part_of_the_cluster(
    server: str, kubelet: str, runtime: str, everywhere: bool
) -> None:
    node = {"status": {"nodeInfo": {"kubeletVersion": kubelet, "containerRuntimeVersion": runtime}}}

    assert image_volumes_everywhere(server={"major": "1", "minor": server}, nodes=[node]) is everywhere
