"""Exposed ports: their URLs in the status, and an Ingress for each, which never holds the sandbox up."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sandpod_crds.keys import preview_token
from sandpod_operator.decide import decide
from sandpod_operator.kinds import INGRESS
from sandpod_operator.objects import Json
from sandpod_operator.observations import Refusal
from sandpod_operator.plan import Plan, Verb
from sandpod_operator.reasons import Reason
from sandpod_operator.settings import Installation
from sandpod_operator.situation import Situation

from tests.support.operator_objects import (
    NOW,
    UID,
    asleep,
    at,
    bound,
    case_of,
    installation,
    pod,
    running,
    sandbox,
    situation,
    status_of,
    up,
)
from tests.support.operator_table import writes

PORTS: Json = {"ports": [{"port": 8080, "name": "web"}]}
PLAIN = installation()


def plan_for(given: Situation, within: Installation = PLAIN) -> Plan:
    return decide(given, now=NOW, installation=within)


def works(spec: Json, *ingresses: Json, **given: Any) -> Situation:
    obj = sandbox(spec, running())
    return situation(obj, pod(spec, up()), ingresses=ingresses, **given)


def ingresses_for(spec: Json, within: Installation = PLAIN) -> tuple[Json, ...]:
    made = plan_for(works(spec), within).writes
    return tuple(there(write.body) for write in made)


def there(body: Json, **metadata: Any) -> Json:
    """As the API server keeps it, and the Store."""
    return {
        "metadata": {**body["metadata"], "uid": "1e9", "resourceVersion": "40", **metadata},
        "spec": body["spec"],
    }


def preview_ready(plan: Plan) -> tuple[str, str, str]:
    assert plan.status is not None
    found = next(each for each in plan.status.conditions if each.type == "PreviewReady")
    return found.status, found.reason, found.message


def token(port: int = 8080, version: int = 1) -> str:
    return preview_token(key=PLAIN.key, sandbox_uid=UID, port=port, version=version)


def refused(reason: Reason, message: str = "no") -> Refusal:
    again = NOW + timedelta(seconds=5)
    return Refusal(sandbox_uid=UID, generation=1, reason=reason, message=message, retry_at=again)


def test_a_port_gets_an_ingress_beside_the_gateway_and_then_its_url() -> None:
    first = plan_for(works(PORTS))
    assert writes(first) == ["create ingresses"]
    (body,) = [write.body for write in first.writes]
    host = f"8080-box-{token()}.sandpod.localhost"
    assert body["metadata"]["namespace"] == "sandpod-system"
    assert body["metadata"]["name"] == f"preview-8080-{UID}"
    assert body["metadata"]["labels"]["sandpod.dev/sandbox-namespace"] == "team"
    assert body["spec"] == {
        "rules": [
            {
                "host": host,
                "http": {
                    "paths": [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"service": {"name": "sandpod-gateway", "port": {"name": "http"}}},
                        }
                    ]
                },
            }
        ]
    }

    second = plan_for(works(PORTS, there(body)))
    assert writes(second) == ["status"]
    assert second.status is not None
    (port,) = second.status.ports
    assert (port.port, port.name, port.access, port.inherited) == (8080, "web", "Token", False)
    assert port.url == f"http://{host}/"
    assert preview_ready(second)[:2] == ("True", "Exposed")


def test_one_that_sleeps_is_exposed_all_the_same() -> None:
    given = situation(sandbox(PORTS, asleep()))
    assert writes(plan_for(given)) == ["create ingresses"]
    then = plan_for(replace(given, ingresses=ingresses_for(PORTS)))
    assert then.status is not None
    assert then.status.ports[0].url is not None


def test_nobody_who_waits_for_a_start_waits_for_an_ingress() -> None:
    assert writes(plan_for(situation(sandbox(PORTS)))) == ["create pod"]
    wall_first = situation(sandbox(PORTS), fenced=False)
    assert writes(plan_for(wall_first)) == ["create networkpolicies"]


def test_a_runtime_that_is_being_asked_is_not_left_alone_for_an_ingress() -> None:
    starting = situation(sandbox(PORTS, status_of("Starting", "Starting")), pod(PORTS, up()))
    plan = plan_for(starting)

    assert writes(plan) == ["create ingresses"]
    assert plan.ask is not None


def test_a_runtime_that_has_answered_is_told_of_when_the_ingress_is_there() -> None:
    given = situation(sandbox(PORTS, status_of("Starting", "Starting")), pod(PORTS, up()), answer=bound())
    plan = plan_for(replace(given, ingresses=ingresses_for(PORTS)))

    assert plan.status is not None
    assert plan.status.phase == "Running"


def test_a_port_that_is_not_wanted_any_more_loses_its_ingress() -> None:
    (made,) = ingresses_for(PORTS)
    (write,) = plan_for(works({}, made)).writes

    assert (write.verb, write.kind, write.uid) == (Verb.DELETE, INGRESS, "1e9")
    assert (write.namespace, write.name) == ("sandpod-system", f"preview-8080-{UID}")


def test_another_token_moves_the_ingress_to_another_host_by_one_write() -> None:
    (made,) = ingresses_for(PORTS)
    rotated = {"ports": [{"port": 8080, "name": "web", "tokenVersion": 2}]}
    (write,) = plan_for(works(rotated, made)).writes

    assert write.verb is Verb.PATCH
    assert write.body["metadata"]["uid"] == "1e9"
    assert write.body["spec"]["rules"][0]["host"] == f"8080-box-{token(version=2)}.sandpod.localhost"


def test_the_host_that_somebody_has_changed_is_put_right() -> None:
    (made,) = ingresses_for(PORTS)
    rules = [{**made["spec"]["rules"][0], "host": "bank.example.com"}]
    assert writes(plan_for(works(PORTS, {**made, "spec": {"rules": rules}}))) == ["patch ingresses"]


def test_what_an_admission_controller_adds_is_left_alone() -> None:
    (made,) = ingresses_for(PORTS)
    more = {**made, "spec": {**made["spec"], "ingressClassName": "chosen"}}
    assert plan_for(works(PORTS, more)).writes == ()


def test_an_upgrade_of_the_operator_rewrites_no_ingress() -> None:
    (made,) = ingresses_for(PORTS)
    assert plan_for(works(PORTS, made), replace(PLAIN, version="0.2.0")).writes == ()


def test_an_ingress_that_is_going_away_is_waited_for() -> None:
    (made,) = ingresses_for(PORTS)
    going = there(made, deletionTimestamp="2026-11-18T12:00:00Z")
    plan = plan_for(works(PORTS, going))

    assert writes(plan) == ["status"]
    assert preview_ready(plan)[:2] == ("False", "Exposing")


def test_an_earlier_sandboxs_ingresses_are_swept() -> None:
    (made,) = ingresses_for(PORTS)
    labels = {**made["metadata"]["labels"], "sandpod.dev/sandbox-uid": "another"}
    earlier = there(made, name="preview-8080-another", uid="2e9", labels=labels)
    assert writes(plan_for(works(PORTS, made, earlier))) == ["delete ingresses"]
    # Also by one of which nobody knows what it is to expose itself.
    unknown = situation(sandbox({"templateRef": {"name": "t"}}), missing="SandboxTemplate t")
    assert writes(plan_for(replace(unknown, ingresses=(earlier,)))) == ["delete ingresses"]


def test_a_sandbox_that_is_gone_or_going_leaves_no_ingress() -> None:
    made = ingresses_for(PORTS)
    assert writes(plan_for(situation(None, ingresses=made))) == ["delete ingresses"]
    going = sandbox(PORTS, running(), deletionTimestamp="2026-11-18T12:00:00Z")
    assert writes(plan_for(situation(going, pod(PORTS, up()), ingresses=made))) == ["delete pod"]
    ending = pod(PORTS, up(), deletionTimestamp=at(30))
    assert writes(plan_for(situation(going, ending, ingresses=made))) == ["delete ingresses"]


@pytest.mark.parametrize(
    ("found", "said"), [(Reason.INGRESS_TAKEN, "IngressTaken"), (Reason.FORBIDDEN, "IngressRefused")]
)
def test_an_ingress_that_is_refused_is_said_and_holds_nothing_up(found: Reason, said: str) -> None:
    given = works(PORTS, refusal=refused(found, "the quota is zero"), refused="ingresses")
    plan = plan_for(given)

    assert writes(plan) == ["status"]
    assert plan.status is not None
    assert plan.status.phase == "Running"
    assert preview_ready(plan)[:2] == ("False", said)
    assert "the quota is zero." in preview_ready(plan)[2]
    assert plan.look_again_at == NOW + timedelta(seconds=5)


def test_in_the_wildcard_mode_there_are_urls_and_no_ingresses() -> None:
    wild = installation(
        previews={"mode": "Wildcard", "site": {"domain": "run.example.com", "scheme": "https"}}
    )
    plan = plan_for(works(PORTS), wild)

    assert writes(plan) == ["status"]
    assert plan.status is not None
    assert plan.status.ports[0].url == f"https://8080-box-{token()}.run.example.com/"
    assert preview_ready(plan)[:2] == ("True", "Exposed")
    assert writes(plan_for(works(PORTS, *ingresses_for(PORTS)), wild)) == ["delete ingresses"]


def test_without_previews_a_port_has_no_url_and_that_is_said() -> None:
    plan = plan_for(works(PORTS), installation(previews={"mode": "None"}))

    assert writes(plan) == ["status"]
    assert plan.status is not None
    assert plan.status.ports[0].url is None
    assert preview_ready(plan)[:2] == ("False", "NoPreviews")


def test_class_certificate_and_annotations_are_the_charts() -> None:
    secure = installation(
        previews={
            "site": {"domain": "run.example.com", "scheme": "https"},
            "ingressClass": "traefik",
            "tlsSecret": "wildcard",
            "annotations": {"example.com/timeout": "1h"},
        }
    )
    (made,) = ingresses_for(PORTS, secure)
    host = f"8080-box-{token()}.run.example.com"
    assert made["spec"]["ingressClassName"] == "traefik"
    assert made["spec"]["tls"] == [{"hosts": [host], "secretName": "wildcard"}]
    assert made["metadata"]["annotations"]["example.com/timeout"] == "1h"

    # Without a Secret, the controller's own certificate counts.
    plain = installation(previews={"site": {"domain": "run.example.com", "scheme": "https"}})
    (write,) = plan_for(works(PORTS, made), plain).writes
    assert write.body["spec"]["tls"] == [{"hosts": [host]}]
    assert write.body["metadata"]["annotations"]["example.com/timeout"] is None
    # A merge patch that would take the class away would not let the cluster choose one.
    assert "ingressClassName" not in write.body["spec"]


def test_ports_of_the_template_are_exposed_and_marked() -> None:
    template: Json = {"ports": [{"port": 8080, "name": "web"}]}
    spec: Json = {"templateRef": {"name": "t"}, "ports": [{"port": 9000}]}
    obj = sandbox(spec, asleep())
    found = case_of(obj, template=template).ports

    assert [(port.port, port.inherited) for port in found] == [(8080, True), (9000, False)]
    assert writes(plan_for(situation(obj, template=template))) == ["create ingresses"] * 2


def test_without_its_template_the_ports_stay_as_they_were() -> None:
    kept = [{"port": 8080, "url": "http://x/", "inherited": True, "access": "Token", "tokenVersion": 1}]
    obj = sandbox({"templateRef": {"name": "t"}}, asleep(ports=kept))
    plan = plan_for(situation(obj, missing="SandboxTemplate t", ingresses=ingresses_for(PORTS)))

    assert plan.writes == ()
    assert plan.status is None or [port.url for port in plan.status.ports] == ["http://x/"]
