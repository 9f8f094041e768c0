"""Preview URLs on a cluster: from a port in the spec to an answer in this machine's browser, by the node port
that `make install` has mapped.
"""

import functools
import json
from typing import Any

import httpx
import yaml

from tests.support.cluster import RELEASE, ROOT, SYSTEM, Json, get, kubectl, run, sandpod
from tests.support.sandboxes import Sandbox, Sandboxes, manifest
from tests.support.waiting import eventually
from tests.support.writes import operator_writes

WEB: Json = {"name": "web", "command": "python3 -m http.server 8000", "port": 8000}
PORT: Json = {"port": 8000, "name": "web"}
OTHER: Json = {"name": "other", "command": "python3 -m http.server 9000", "port": 9000}


@functools.cache
def authority() -> str:
    """Where previews are reached from outside the cluster: as their URLs say, but for the name."""
    settings = deployed_settings("gateway")
    return f"127.0.0.1:{settings['site']['port']}"


def deployed_settings(component: str) -> Json:
    found = get("deployment", f"{RELEASE}-{component}", "-n", SYSTEM)
    return settings_of(found)


def settings_of(deployment: Json) -> Json:
    containers: list[Json] = deployment["spec"]["template"]["spec"]["containers"]
    named = {
        each["name"]: each["value"] for box in containers for each in box.get("env", []) if "value" in each
    }
    return json.loads(named["SANDPOD_SETTINGS"])


def open_it(url: str, path: str = "/", *, timeout: float = 30) -> httpx.Response:
    """Names below localhost need not be known to this machine: connects to it, and says whom it means."""
    host = url.removeprefix("http://").rstrip("/")
    with httpx.Client(trust_env=False, timeout=timeout) as client:
        return client.get(f"http://{authority()}{path}", headers={"Host": host, "Accept": "application/json"})


def answers(url: str) -> bool:
    assert open_it(url).status_code == 200
    return True


def ports_of(box: Sandbox) -> dict[int, Json]:
    return {each["port"]: each for each in box.status().get("ports", [])}


def url_of(box: Sandbox, port: int = 8000, *, version: int = 1) -> str:
    """Once the operator has written it."""

    def found() -> str | None:
        entry = ports_of(box).get(port, {})
        return entry.get("url") if entry.get("tokenVersion") == version else None

    return eventually(found)


def ingresses(box: Sandbox) -> list[Json]:
    ours = f"sandpod.dev/sandbox-namespace={box.namespace},app.kubernetes.io/instance={box.name}"
    return get("ingresses", "-n", SYSTEM, "-l", ours)["items"]


def change(box: Sandbox, **spec: Any) -> None:
    kubectl(
        "patch", "sandbox", box.name, "-n", box.namespace, "--type=merge", "-p", json.dumps({"spec": spec})
    )


def test_a_port_in_the_spec_is_a_url_that_answers(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT], processes=[WEB]).wait().wait(condition="PreviewReady")
    url = url_of(box)

    assert eventually(lambda: answers(url))
    assert box.condition("PreviewReady")["reason"] == "Exposed"
    (row,) = kubectl(
        "get", "sandboxes", "-n", box.namespace, "-o", "wide", "--no-headers"
    ).stdout.splitlines()
    assert url in row
    assert url in sandpod("list", "-n", box.namespace, "-o", "wide").stdout
    assert sandpod("open", box.name, "-n", box.namespace, "--print").stdout.strip() == url


def test_its_ingress_leads_to_the_gateway_and_goes_with_it(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT, {"port": 9000}]).wait(condition="PreviewReady")
    hosts = {port["url"].removeprefix("http://").split(":")[0] for port in ports_of(box).values()}
    found = ingresses(box)

    assert {rule["host"] for each in found for rule in each["spec"]["rules"]} == hosts
    for each in found:
        (path,) = each["spec"]["rules"][0]["http"]["paths"]
        assert path["backend"]["service"] == {"name": f"{RELEASE}-gateway", "port": {"name": "http"}}
    change(box, ports=[PORT])
    eventually(lambda: len(ingresses(box)) == 1)
    box.delete()
    eventually(lambda: not ingresses(box))


def test_two_sandboxes_of_one_name_keep_to_their_own(sandbox: Sandboxes, shared_sandbox: Sandboxes) -> None:
    one, other = sandbox("twin", ports=[PORT]), shared_sandbox("twin", ports=[PORT])
    assert url_of(one.wait(condition="PreviewReady")) != url_of(other.wait(condition="PreviewReady"))
    one.delete()

    eventually(lambda: not ingresses(one))
    assert len(ingresses(other)) == 1


def test_a_port_that_is_taken_back_is_dead_at_once_and_comes_back_as_another(sandbox: Sandboxes) -> None:
    box = sandbox(processes=[WEB]).wait()
    here = ("-n", box.namespace)
    first = sandpod("expose", box.name, "8000", *here).stdout.strip()
    eventually(lambda: answers(first))

    sandpod("unexpose", box.name, "8000", *here)
    eventually(lambda: open_it(first).status_code == 404, timeout=2)
    eventually(lambda: not ingresses(box))

    second = sandpod("expose", box.name, "8000", *here).stdout.strip()
    assert second != first
    eventually(lambda: answers(second))
    assert open_it(first).status_code == 404


def test_a_rotated_token_moves_the_url_and_its_one_ingress(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT], processes=[WEB]).wait(condition="PreviewReady").wait()
    first, (ingress,) = url_of(box), ingresses(box)
    eventually(lambda: answers(first))
    change(box, ports=[{**PORT, "tokenVersion": 2}])
    second = url_of(box, version=2)

    assert second != first
    eventually(lambda: answers(second))
    assert open_it(first).status_code == 404
    (moved,) = ingresses(box)
    assert moved["metadata"]["uid"] == ingress["metadata"]["uid"]
    assert moved["spec"]["rules"][0]["host"] in second


def test_a_request_to_a_url_wakes_its_sandbox(sandbox: Sandboxes) -> None:
    spec: Json = {"ports": [PORT], "processes": [WEB], "workspace": {"size": "1Gi"}}
    box = sandbox(sleepAfter="2s", **spec).wait(condition="PreviewReady").wait()
    url = url_of(box)
    box.falls_asleep()
    assert url_of(box) == url

    assert open_it(url, timeout=60).status_code == 200
    assert box.reaches("Running")["wakes"] == 1


def test_a_paused_sandbox_keeps_its_url_and_is_not_woken(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT], paused=True)
    url = url_of(box)

    assert open_it(url).status_code == 409
    assert box.status()["phase"] == "Asleep"
    assert len(ingresses(box)) == 1


def test_the_ports_of_a_template_are_exposed_in_each_of_its_sandboxes(sandbox: Sandboxes) -> None:
    template = {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "SandboxTemplate",
        "metadata": {"name": "site", "namespace": sandbox.namespace},
        "spec": {"ports": [PORT], "processes": [WEB]},
    }
    kubectl("apply", "-f", "-", input=json.dumps(template))
    box = sandbox(templateRef={"name": "site"}, ports=[{"port": 9000}], processes=[OTHER]).wait()

    eventually(lambda: answers(url_of(box, 8000)))
    eventually(lambda: answers(url_of(box, 9000)))
    assert [ports_of(box)[port]["inherited"] for port in (8000, 9000)] == [True, False]


def test_a_cold_start_with_a_workspace_and_a_port_is_six_writes(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT], workspace={"size": "1Gi"}).wait(condition="PreviewReady").wait()
    assert len(ingresses(box)) == 1
    # Without the budget, one of which is for the namespace, and the event.
    others = ("create poddisruptionbudgets", "create events")
    written = [each for each in operator_writes(box.namespace) if not each.startswith(others)]

    # And the Ingress, of which one is in the release's namespace.
    assert len(written) <= 5, written


def test_an_ingress_is_written_in_the_releases_namespace_and_nowhere_else() -> None:
    operator = f"--as=system:serviceaccount:{SYSTEM}:{RELEASE}-operator"

    def may(verb: str, namespace: str) -> str:
        return kubectl(
            "auth", "can-i", verb, "ingresses", "-n", namespace, operator, check=False
        ).stdout.strip()

    for verb in ("create", "patch", "delete"):
        assert (may(verb, SYSTEM), may(verb, "default")) == ("yes", "no")
    assert may("list", "default") == "yes"


def rendered(*settings: str) -> list[Json]:
    options = [option for each in settings for option in ("--set", each)]
    done = run("helm", "template", RELEASE, ROOT / "charts/sandpod", "-n", SYSTEM, *options)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def test_in_the_wildcard_mode_the_chart_makes_one_ingress_for_all() -> None:
    domain = ("previews.mode=Wildcard", "previews.domain=run.example.com", "previews.scheme=https")
    made = rendered(*domain, "previews.tlsSecretName=wild", "previews.ingressClassName=nginx")
    (ingress,) = [each for each in made if each["kind"] == "Ingress"]

    assert ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["spec"]["rules"][0]["host"] == "*.run.example.com"
    assert ingress["spec"]["tls"] == [{"hosts": ["*.run.example.com"], "secretName": "wild"}]
    settings = {each["metadata"]["name"]: settings_of(each) for each in made if each["kind"] == "Deployment"}
    assert settings[f"{RELEASE}-operator"]["previews"]["mode"] == "Wildcard"
    site = {"domain": "run.example.com", "scheme": "https", "port": 0}
    assert (
        settings[f"{RELEASE}-gateway"]["site"] == settings[f"{RELEASE}-operator"]["previews"]["site"] == site
    )


def test_without_previews_neither_has_a_site_and_no_ingress_is_made() -> None:
    made = rendered("previews.mode=None")
    gateway = next(
        each
        for each in made
        if each["metadata"]["name"] == f"{RELEASE}-gateway" and each["kind"] == "Deployment"
    )

    assert settings_of(gateway)["site"] is None
    assert [each for each in made if each["kind"] == "Ingress"] == []


def test_the_example_is_a_url_that_answers(namespace: str) -> None:
    example = yaml.safe_load((ROOT / "examples/preview.yaml").read_text())
    name = example["metadata"]["name"]
    kubectl(
        "apply", "-f", "-", input=json.dumps(manifest(name=name, namespace=namespace, spec=example["spec"]))
    )
    box = Sandbox(name=name, namespace=namespace).wait()

    eventually(lambda: answers(url_of(box)))


# Last: an operator that has just started finds out about the cluster, and writes that into each status.
def test_what_a_deleted_sandbox_leaves_while_the_operator_is_down_is_swept(sandbox: Sandboxes) -> None:
    box = sandbox(ports=[PORT]).wait(condition="PreviewReady")
    operator = ("-n", SYSTEM, "deployment/sandpod-operator")
    kubectl("scale", "--replicas=0", *operator)
    try:
        kubectl("wait", "pods", "-n", SYSTEM, "-l", "app.kubernetes.io/component=operator", "--for=delete")
        box.delete()
        assert len(ingresses(box)) == 1
    finally:
        kubectl("scale", "--replicas=1", *operator)
    eventually(lambda: not ingresses(box), timeout=60)
