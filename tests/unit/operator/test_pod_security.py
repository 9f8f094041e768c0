"""Our pods pass Pod Security's level "restricted", whatever a spec asks for. Kubernetes' own checks judge."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sandpod_operator.errors import BadPodTemplate
from sandpod_operator.objects import Json
from sandpod_operator.settings import RuntimeMount

from tests.support.judges import BUILD_SECONDS, Ask, judging
from tests.support.operator_objects import INSTALLATION, case_of, sandbox
from tests.support.pool_objects import waiting_pod

SPECS: dict[str, Json] = {
    "an empty one": {},
    "another user": {"user": 4711},
    "another image, with the runtime mounted": {"image": "registry.example.com/tools:1"},
    "a workspace": {"workspace": {"size": "1Gi"}},
    "a workspace in another image": {"workspace": {"size": "1Gi"}, "image": "tools:1"},
    "variables from elsewhere": {
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
    },
    "processes and setup": {"processes": [{"name": "web", "command": "serve"}], "setup": ["make"]},
    "no sleep": {"keepAlive": True},
}
POISON: Json = {
    "privileged": True,
    "allowPrivilegeEscalation": True,
    "runAsNonRoot": False,
    "runAsUser": 0,
    "procMount": "Unmasked",
    "capabilities": {"add": ["SYS_ADMIN", "NET_RAW"], "drop": []},
    "seccompProfile": {"type": "Unconfined"},
}
TEMPLATES: dict[str, Json] = {
    "host namespaces": {"hostNetwork": True, "hostPID": True, "hostIPC": True, "shareProcessNamespace": True},
    "a pod that is root": {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
    "a pod without seccomp": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "a poisoned sandbox": {"containers": [{"name": "sandbox", "securityContext": POISON}]},
    "a poisoned sidecar": {"containers": [{"name": "proxy", "image": "p", "securityContext": POISON}]},
    "a poisoned init container": {"initContainers": [{"name": "i", "image": "p", "securityContext": POISON}]},
    "a poisoned runtime": {"initContainers": [{"name": "sandpod-runtime", "securityContext": POISON}]},
    "volumes of every kind that is harmless": {
        "volumes": [
            {"name": "a", "configMap": {"name": "c"}},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "emptyDir": {}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "x"}},
            {"name": "e", "downwardAPI": {"items": []}},
            {"name": "f", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
            {"name": "g", "csi": {"driver": "secrets.example.com"}},
            {"name": "h", "image": {"reference": "data:1"}},
            {"name": "i", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        ]
    },
    "profiles that narrow": {
        "containers": [
            {
                "name": "sandbox",
                "securityContext": {
                    "appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"},
                    "seLinuxOptions": {"type": "container_t", "level": "s0:c1,c2"},
                    "readOnlyRootFilesystem": True,
                },
            }
        ]
    },
    "probes of its own ports": {
        "containers": [
            {
                "name": "proxy",
                "image": "p",
                "livenessProbe": {"httpGet": {"port": 8080}},
                "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            }
        ]
    },
}
WIDENING: dict[str, tuple[Json, str]] = {
    "SELinux types for administrators": ({"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions"),
    "SELinux users": ({"seLinuxOptions": {"user": "system_u"}}, "seLinuxOptions"),
    "SELinux roles": ({"seLinuxOptions": {"role": "sysadm_r"}}, "seLinuxOptions"),
    "no AppArmor": ({"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile"),
}


def template(spec: Json) -> Json:
    return {"podTemplate": {"spec": spec}}


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with judging("podsecurity") as found:
        yield found


@pytest.mark.timeout(BUILD_SECONDS)
class TestJudgedByKubernetes:
    def test_a_pod_that_says_nothing_would_not_pass(self, ask: Ask) -> None:
        assert len(ask({"spec": {"containers": [{"name": "sandbox"}]}})) == 4

    @pytest.mark.parametrize("spec", SPECS)
    @pytest.mark.parametrize("way", [RuntimeMount.IMAGE_VOLUME, RuntimeMount.INIT_CONTAINER])
    def test_the_pod_of_a_sandbox_passes(self, ask: Ask, spec: str, way: RuntimeMount) -> None:
        within = replace(INSTALLATION, runtime_mount=way)
        assert ask(case_of(sandbox(SPECS[spec]), within=within).wanted_pod) == []

    @pytest.mark.parametrize("spec", SPECS)
    def test_a_pod_that_waits_in_a_pool_passes(self, ask: Ask, spec: str) -> None:
        assert ask(waiting_pod(template=SPECS[spec])) == []

    @pytest.mark.parametrize("wish", TEMPLATES)
    def test_a_pod_passes_whatever_its_template_asks_for(self, ask: Ask, wish: str) -> None:
        spec = {"image": "tools:1", **template(TEMPLATES[wish])}
        within = replace(INSTALLATION, runtime_mount=RuntimeMount.INIT_CONTAINER)
        assert ask(case_of(sandbox(spec), within=within).wanted_pod) == []


def refused(spec: Json) -> str:
    with pytest.raises(BadPodTemplate) as error:
        _ = case_of(sandbox(template(spec))).wanted_pod
    return str(error.value)


@pytest.mark.parametrize("widening", WIDENING)
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_profiles_that_widen_are_refused_in_containers(widening: str, where: str) -> None:
    context, field = WIDENING[widening]
    said = refused({where: [{"name": "x", "image": "i", "securityContext": context}]})
    assert f"podTemplate.spec.{where}[x].securityContext.{field}" in said


@pytest.mark.parametrize("widening", WIDENING)
def test_profiles_that_widen_are_refused_for_the_pod(widening: str) -> None:
    context, field = WIDENING[widening]
    assert f"podTemplate.spec.securityContext.{field}" in refused({"securityContext": context})


@pytest.mark.parametrize(
    "source",
    [
        {"hostPath": {"path": "/"}},
        # The node mounts these, from its own network.
        {"nfs": {"server": "10.0.0.1", "path": "/"}},
        {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "i", "lun": 0}},
        {"gitRepo": {"repository": "https://example.com/x"}},
        {"somethingNew": {}},
    ],
)
def test_volumes_that_reach_beyond_the_pod_are_refused(source: Json) -> None:
    kind = next(iter(source))
    said = refused({"volumes": [{"name": "v", **source}]})
    assert said.startswith(f"podTemplate.spec.volumes[v] is a {kind}: ")


HANDLERS: list[tuple[str, Json]] = [
    *(
        (probe, {"httpGet": {"port": 80, "host": "169.254.169.254"}})
        for probe in ("livenessProbe", "startupProbe")
    ),
    ("readinessProbe", {"tcpSocket": {"port": 22, "host": "10.0.0.1"}}),
    ("lifecycle.postStart", {"httpGet": {"port": 80, "host": "169.254.169.254"}}),
    ("lifecycle.preStop", {"tcpSocket": {"port": 22, "host": "10.0.0.1"}}),
]


@pytest.mark.parametrize(("place", "handler"), HANDLERS)
def test_the_node_connects_to_nobody_else_for_a_pod(place: str, handler: Json) -> None:
    container: dict[str, Any] = {"name": "x", "image": "i"}
    first, _, second = place.partition(".")
    container[first] = {second: handler} if second else handler
    assert f"containers[x].{place}" in refused({"containers": [container]})
