"""The volume of a sandbox: made before its pod, kept as the spec says, and told of when something is the
matter. And its setup, which prepares it."""

import pytest
from sandpod_operator.decide import decide
from sandpod_operator.objects import Json, section
from sandpod_operator.observations import Errand, SetupResult
from sandpod_operator.plan import Plan
from sandpod_operator.reasons import Reason
from sandpod_operator.situation import Situation

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    UID,
    answer,
    asleep,
    at,
    bound,
    claim,
    pod,
    running,
    sandbox,
    situation,
    starting,
    up,
    wanted_awake,
    written,
)
from tests.support.operator_table import Row, check
from tests.support.workspace_objects import BIGGER, RUNS, THEIRS, VOLUME, refusal, runs, sleeps, unready

KEPT: Json = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}


MADE = {
    "the claim comes before the pod": Row(
        situation(sandbox(VOLUME)),
        writes=["create persistentvolumeclaims"],
    ),
    "then the pod, whether the volume is there or waits for it": Row(
        situation(sandbox(VOLUME), claims=(claim(phase="Pending", creationTimestamp=at(0)),)),
        writes=["create pod"],
    ),
    "a claim that is going must be gone first": Row(
        situation(sandbox(VOLUME), claims=(claim(deletionTimestamp=at(-1)),)),
        writes=["status"],
        phase="Pending",
        ready=("False", "EarlierClaim"),
        tells=["EarlierClaim"],
    ),
    "so must that of an earlier sandbox": Row(
        situation(sandbox(VOLUME), claims=(claim(owner="another"),)),
        writes=["status"],
        phase="Pending",
        ready=("False", "EarlierClaim"),
        tells=["EarlierClaim"],
    ),
    "one that was retained is taken up, and retained": Row(
        situation(sandbox(KEPT), claims=(claim(owner=None),)),
        writes=["create pod"],
    ),
    "or made the sandbox's own": Row(
        situation(sandbox(VOLUME), claims=(claim(owner=None),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "a claim that has a name is not ours to make": Row(
        situation(sandbox(THEIRS)),
        writes=["create pod"],
    ),
    "quota for volumes used up": Row(
        situation(
            sandbox(VOLUME),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.QUOTA_EXCEEDED, "exceeded quota: q, used: storage=9Gi"),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "QuotaExceeded"),
        says="storage=9Gi",
        status={"nextStartAt": at(10)},
        tells=["QuotaExceeded"],
        again_in=10,
    ),
    "and tried again in time": Row(
        situation(
            sandbox(VOLUME),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.QUOTA_EXCEEDED, retry_in=0),
        ),
        writes=["create persistentvolumeclaims"],
    ),
    "a stranger's claim of its name is left alone": Row(
        situation(
            sandbox(VOLUME),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.CLAIM_TAKEN, "it belongs to nobody."),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "ClaimTaken"),
        says="name it in spec.workspace.claimName",
        tells=["ClaimTaken"],
        again_in=10,
    ),
    "asked for while it runs, it comes with the next start": Row(
        situation(sandbox(VOLUME, running()), pod(status=RUNS)),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"workspaceClaim": None},
    ),
}

KEPT_UP = {
    "retained from now on": Row(
        situation(sandbox(KEPT, runs(VOLUME)), pod(VOLUME, RUNS), claims=(claim(),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "deleted with it from now on": Row(
        situation(sandbox(VOLUME, runs(KEPT)), pod(KEPT, RUNS), claims=(claim(owner=None),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "while it sleeps, too": Row(
        situation(sandbox(KEPT, sleeps(VOLUME)), claims=(claim(),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "growing": Row(
        situation(sandbox(BIGGER, runs(VOLUME)), pod(VOLUME, RUNS), claims=(claim(),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "while it sleeps, it grows as well": Row(
        situation(sandbox(BIGGER, sleeps(VOLUME)), claims=(claim(),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "never shrinking": Row(
        situation(
            sandbox(VOLUME, runs(VOLUME, claims=(claim(),))), pod(VOLUME, RUNS), claims=(claim(size="5Gi"),)
        ),
    ),
    "a refused growth is tried again in time, and it goes on": Row(
        situation(
            sandbox(BIGGER, runs(VOLUME, claims=(claim(),))),
            pod(VOLUME, RUNS),
            claims=(claim(),),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.INVALID_CLAIM, "cannot be resized", retry_in=300),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        tells=["CannotGrow"],
        again_in=300,
    ),
    "a refused owner is no refused growth": Row(
        situation(
            sandbox(KEPT, runs(VOLUME, claims=(claim(),))),
            pod(VOLUME, RUNS),
            claims=(claim(),),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.FORBIDDEN, "owners may not change"),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        tells=[],
        again_in=10,
    ),
    "a claim that is going is left in peace": Row(
        situation(
            sandbox(BIGGER, runs(VOLUME, claims=(claim(),))),
            pod(VOLUME, RUNS),
            claims=(claim(deletionTimestamp=at(-1)),),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        tells=["ClaimDeleted"],
    ),
    "a claim with another's name on it is labelled": Row(
        situation(
            sandbox(VOLUME, runs(VOLUME)),
            pod(VOLUME, RUNS),
            claims=(claim(labels={"app.kubernetes.io/instance": "warm"}),),
        ),
        writes=["patch persistentvolumeclaims"],
    ),
    "with all as it should be, nothing is written": Row(
        situation(sandbox(VOLUME, runs(VOLUME, claims=(claim(),))), pod(VOLUME, RUNS), claims=(claim(),)),
    ),
    "nor while it sleeps": Row(
        situation(sandbox(VOLUME, sleeps(VOLUME, claims=(claim(),))), claims=(claim(),)),
    ),
    "deleted while it sleeps, it is made again with the next start": Row(
        situation(sandbox(VOLUME, sleeps(VOLUME, claims=(claim(),)), **wanted_awake())),
        writes=["create persistentvolumeclaims"],
    ),
}

SETUP: Json = {"setup": ["make"]}

SETTING_UP: Json = starting(setup={"result": "Running", "message": ""})

AT_IT = written(situation(sandbox(SETUP, starting()), pod(SETUP, up()), answer=bound(ago=1)))

PREPARED = {
    "a setup that may have been done before is not yet spoken of": Row(
        situation(sandbox(SETUP, starting()), pod(SETUP, up()), answer=bound()),
        asks=Errand.SETUP,
        again_in=1,
    ),
    "nobody works in it before the setup has ended": Row(
        situation(sandbox(SETUP, starting()), pod(SETUP, up()), answer=bound(ago=1)),
        writes=["status"],
        phase="Starting",
        ready=("False", "SettingUp"),
        says="kubectl sandbox logs box --setup -n team",
        status={"setup": {"result": "Running", "message": "", "finishedAt": None}, "startedAt": None},
        asks=Errand.SETUP,
    ),
    "it has succeeded": Row(
        situation(
            sandbox(SETUP, SETTING_UP),
            pod(SETUP, up()),
            answers=(bound(), answer(Errand.SETUP, setup=SetupResult(state="Succeeded"))),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"setup": {"result": "Succeeded", "message": "", "finishedAt": at(0)}},
    ),
    "it has failed, and one can work in it": Row(
        situation(
            sandbox(SETUP, SETTING_UP),
            pod(SETUP, up()),
            answers=(
                bound(),
                answer(Errand.SETUP, setup=SetupResult(state="Failed", message="make: no rule")),
            ),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"setup": {"result": "Failed", "message": "make: no rule", "finishedAt": at(0)}},
        tells=["SetupFailed"],
    ),
    "however long it takes, it is not given up": Row(
        situation(
            sandbox(SETUP, AT_IT),
            pod(SETUP, up(since=-9000)),
            answer=bound(ago=9000),
            asked=-9000,
        ),
        asks=Errand.SETUP,
    ),
    "nor by an operator that was restarted, which makes itself known": Row(
        situation(
            sandbox(SETUP, AT_IT),
            pod(SETUP, up(since=-9000)),
        ),
        asks=Errand.BIND,
    ),
    "a pod that dies of it is a failed start": Row(
        situation(
            sandbox(SETUP, SETTING_UP),
            pod(SETUP, {**up(), "phase": "Failed", "reason": "Evicted", "message": "disk pressure"}),
            answer=bound(),
        ),
        writes=["status", "delete pod"],
        phase="Pending",
        ready=("False", "Evicted"),
        status={"startFailures": 1, "setup": None, "restarts": None},
        tells=["Evicted"],
    ),
}

ANSWERING = {
    "an operator that was away asks before it gives a runtime up": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-9000))),
        asks=Errand.BIND,
        again_in=10,
    ),
    "and gives it the time to answer": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-9000)), asked=-9),
        asks=Errand.BIND,
        again_in=1,
    ),
    "a kubelet that does not find it ready is a reason to ask why": Row(
        situation(
            sandbox(VOLUME, runs(VOLUME, claims=(claim(),))), pod(VOLUME, unready()), claims=(claim(),)
        ),
        asks=Errand.CHECK,
    ),
}

TABLES = {"made": MADE, "kept": KEPT_UP, "prepared": PREPARED, "asked": ANSWERING}

TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])


def decided(given: Situation) -> Plan:
    return decide(given, now=NOW, installation=INSTALLATION)


def test_a_claim_is_made_as_the_spec_says() -> None:
    plan = decided(situation(sandbox({"workspace": {"size": "3Gi", "storageClassName": "fast"}})))
    body = plan.writes[0].body
    assert body["metadata"]["name"] == "box-workspace"
    assert body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert body["spec"]["storageClassName"] == "fast"
    assert body["spec"]["resources"] == {"requests": {"storage": "3Gi"}}

    kept = decided(situation(sandbox(KEPT))).writes[0].body
    assert "ownerReferences" not in kept["metadata"]


def test_a_patch_is_for_the_very_claim_and_says_only_what_changes() -> None:
    given = situation(sandbox(BIGGER, runs(VOLUME)), pod(VOLUME, RUNS), claims=(claim(),))
    assert decided(given).writes[0].body == {
        "metadata": {"uid": claim()["metadata"]["uid"]},
        "spec": {"resources": {"requests": {"storage": "2Gi"}}},
    }


def test_a_volume_is_retained_before_it_is_to_grow_which_may_be_refused() -> None:
    both: Json = {"workspace": {"size": "2Gi", "reclaim": "Retain"}}
    given = situation(sandbox(both, runs(VOLUME)), pod(VOLUME, RUNS), claims=(claim(),))
    (patch,) = decided(given).writes

    assert patch.body["metadata"]["ownerReferences"] is None
    assert "spec" not in patch.body


def test_the_name_of_a_claim_that_a_warm_pod_has_brought_is_kept_while_it_sleeps() -> None:
    status = {**asleep(), "workspaceClaim": "warm-abc-workspace"}
    brought = claim(name="warm-abc-workspace")
    plan = decided(situation(sandbox(VOLUME, status, **wanted_awake()), claims=(brought,)))

    assert plan.create_pod is not None
    volumes = section(plan.create_pod, "spec")["volumes"]
    assert {"claimName": "warm-abc-workspace"} in [v.get("persistentVolumeClaim") for v in volumes]


# A volume that nobody can write to
