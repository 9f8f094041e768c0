"""The operator going away at bad moments, and the work it does not do twice."""

from tests.support.cluster import SYSTEM, get, kill_the_operator
from tests.support.sandboxes import Sandboxes
from tests.support.writes import operator_writes


def test_an_operator_killed_in_the_middle_of_starts_loses_nothing(sandbox: Sandboxes) -> None:
    first = [sandbox(f"box-{i}") for i in range(3)]
    kill_the_operator()
    then = [sandbox(f"box-{i}") for i in range(3, 5)]
    for box in first + then:
        box.wait(timeout=60)
    for box in first + then:
        assert box.output("hostname") == box.name


def test_a_converged_cluster_costs_no_write_when_the_operator_restarts(
    shared_sandbox: Sandboxes, sandbox: Sandboxes
) -> None:
    for i in range(2):
        shared_sandbox(f"converged-{i}").wait()
    before = operator_writes(shared_sandbox.namespace)
    kill_the_operator()
    # The new operator looks at everything that is there before it gets to what comes then.
    sandbox().wait()
    assert operator_writes(shared_sandbox.namespace) == before


def test_the_control_plane_keeps_within_its_own_bounds() -> None:
    pods = get("pods", "-n", SYSTEM)["items"]
    assert {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods} >= {
        "operator",
        "gateway",
    }
    for pod in pods:
        context = pod["spec"]["containers"][0]["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
