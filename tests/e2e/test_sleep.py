"""Sleep and wake: when a sandbox sleeps, what is there again afterwards, and what wakes it."""

import json
import re

from tests.support.cluster import Json, kubectl
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually

FILES: Json = {"workspace": {"size": "1Gi"}}


def call(box: Sandbox, path: str, body: Json) -> Json:
    """A request to its runtime through the API server."""
    run = f"/apis/run.sandpod.dev/v1alpha1/namespaces/{box.namespace}/sandboxes/{box.name}/proxy"
    return json.loads(kubectl("create", "--raw", run + path, "-f", "-", input=json.dumps(body)).stdout)


def test_an_idle_sandbox_sleeps_and_says_since_when_and_why(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="1s").wait()
    status = box.falls_asleep()

    assert status["sleepReason"] == "Idle"
    assert status["asleepSince"] >= status["lastActiveAt"]
    assert "next request wakes it" in box.condition()["message"]
    head, row = kubectl("get", "sandboxes", "-n", box.namespace).stdout.splitlines()
    asleep, why = head.index("ASLEEP"), head.index("WHY")
    assert "Asleep" in row[:asleep]
    assert re.fullmatch(r"\d+s", row[asleep:why].strip())
    assert row[why:].startswith("Idle")
    assert "nobody worked" in box.told("Idle")


def test_a_wake_brings_files_sessions_processes_and_ports_back(sandbox: Sandboxes) -> None:
    server = {"name": "web", "command": "python3 -m http.server 8080", "port": 8080}
    box = sandbox(sleepAfter="2s", processes=[server], **FILES).wait()
    work = (
        "cd /workspace && mkdir -p app && cd app && export COLOR=red && hello() { echo hi $1; } && echo x > f"
    )
    assert call(box, "/api/execute", {"command": work, "sessionId": "mine"})["exitCode"] == 0
    status = box.falls_asleep()
    assert {"id": "mine", "cwd": "/workspace/app"} in status["sessions"]

    box.wake()

    again = call(box, "/api/execute", {"command": "pwd; echo $COLOR; hello you; cat f", "sessionId": "mine"})
    assert again["stdout"] == "/workspace/app\nred\nhi you\nx\n"
    web = "curl -sf --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null localhost:8080 && echo up"
    assert box.output(web) == "up"
    assert box.status()["wakes"] == 1


def test_without_a_workspace_a_sleep_loses_files_and_says_so_beforehand(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="1s").wait()
    assert "lost when the sandbox sleeps" in box.condition("WorkspaceReady")["message"]
    box.exec("sh", "-c", "echo x > /workspace/f")
    assert not box.falls_asleep().get("sessions")

    assert box.wake().output("ls /workspace") == ""


def test_a_request_wakes_a_sleeping_sandbox(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="1s", **FILES).wait()
    box.exec("sh", "-c", "echo kept > /workspace/f")
    box.falls_asleep()

    assert box.output("cat /workspace/f") == "kept"


def test_a_change_of_sleep_after_works_at_once_and_without_a_restart(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="1h").wait()
    pod: str = box.status()["podUID"]

    box.apply(keepAlive=True)
    eventually(lambda: box.status().get("sleepAfter") == "never")
    box.apply(sleepAfter="2h")
    eventually(lambda: box.status().get("sleepAfter") == "2h")
    assert box.status()["podUID"] == pod
    box.apply(sleepAfter="1s")

    assert box.falls_asleep()["sleepReason"] == "Idle"


def test_work_that_uses_the_cpu_keeps_it_awake(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="2s").wait()
    call(box, "/api/process/start", {"command": "timeout 12 sh -c 'while :; do :; done'"})
    started = box.status()["startedAt"]
    status = box.falls_asleep(timeout=90)

    assert status["lastActiveAt"] > started
    finished = kubectl(
        "get", "sandbox", box.name, "-n", box.namespace, "-o", "jsonpath={.status.asleepSince}"
    )
    assert finished.stdout >= status["lastActiveAt"]


def test_a_paused_sandbox_sleeps_and_no_request_wakes_it(sandbox: Sandboxes) -> None:
    box = sandbox(**FILES).wait()
    call(box, "/api/execute", {"command": "cd /workspace && export A=1", "sessionId": "mine"})
    box.apply(paused=True, **FILES)
    assert box.falls_asleep()["sleepReason"] == "Paused"
    kubectl("annotate", "sandbox", box.name, "-n", box.namespace, "sandpod.dev/wake-requested-at=now")
    refused = box.exec("true", check=False)
    assert refused.returncode != 0
    assert "paused" in refused.stderr
    assert box.status()["phase"] == "Asleep"

    box.apply(**FILES).wait()

    again = call(box, "/api/execute", {"command": "pwd; echo $A", "sessionId": "mine"})
    assert again["stdout"] == "/workspace\n1\n"


def test_a_sandbox_that_is_paused_from_the_beginning_gets_no_pod_until_it_is_not(sandbox: Sandboxes) -> None:
    box = sandbox(paused=True)
    assert box.reaches("Asleep")["sleepReason"] == "Paused"
    assert not kubectl("get", "pods", "-n", box.namespace).stdout

    box.apply().wait()


def test_its_lifetime_ends_with_it_and_all_that_belongs_to_it(sandbox: Sandboxes) -> None:
    box = sandbox(lifetime={"maxAge": "8s"}, **FILES).wait()

    eventually(lambda: not kubectl("get", "sandboxes", "-n", box.namespace).stdout, timeout=60)
    left = "pods,persistentvolumeclaims,networkpolicies"
    eventually(lambda: not kubectl("get", left, "-n", box.namespace).stdout, timeout=60)


def test_it_is_deleted_when_it_has_slept_for_long_enough(sandbox: Sandboxes) -> None:
    box = sandbox(sleepAfter="1s", lifetime={"deleteAfterAsleep": "3s"}).wait()
    box.falls_asleep()

    eventually(lambda: not kubectl("get", "sandboxes", "-n", box.namespace).stdout, timeout=60)
