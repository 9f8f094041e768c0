"""One sandbox as decide sees it: what is known at this moment, the questions that the lifecycle asks of it,
and the ways in which a decision ends. No I/O, no clock.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property

from sandpod_crds import durations
from sandpod_crds.models import Sandbox
from sandpod_crds.names import ANNOTATION_WAKE, SANDBOX_KIND, ConditionType, child_labels

from .claims import ClaimFacts
from .conditions import Verdict, verdicts
from .effective import Effective, effective_spec
from .errors import BadPodTemplate
from .isolation import isolation_of_pod, isolation_verdict
from .kinds import CLAIM, NETWORK_POLICY, POD, Kind
from .objects import Json, owner_reference
from .observations import Answer, Errand, Outcome, Refusal
from .permission import denial_of
from .plan import Ask, Notice, Plan, Removal, Tone, Write
from .pods import ANNOTATION_COLD, ANNOTATION_POD_HASH
from .policy import Denial, idle_limit
from .pool.claim import ColdStart, Reading
from .pool.pod import shape_of
from .pool.take import environment_of
from .reasons import Reason, sentence
from .resources.claim import workspace_name
from .resources.pod import Frame, bind_env, build_pod, overridden_fields, sandbox_image, spec_hash
from .settings import Installation
from .situation import Situation
from .status import LONGEST_PAUSE, Draft
from .workspace import WORTH_AN_EVENT, provisioning_deadline, workspace_verdict

NEVER = "never"


class Case:
    """A sandbox that exists and is to go on existing."""

    def __init__(
        self, situation: Situation, sandbox: Sandbox, *, now: datetime, installation: Installation
    ) -> None:
        self.now = now
        self.sandbox = sandbox
        self.status = sandbox.status
        self.pod = situation.pod
        self.namesake = situation.namesake
        self.surplus = situation.surplus
        self.network_policy = situation.network_policy
        self.rules = situation.rules
        self._enforcement = situation.enforcement
        self.installation = installation
        self.settings = installation.settings
        self._answers = situation.answers
        self._refusals = situation.refusals
        self._claims = situation.claims
        self.offer = situation.offer
        self.environment = situation.environment
        self.walled = situation.walled
        self.asked_since = situation.asked_since
        recorded = self.pod.template if self.pod is not None else None
        self.effective: Effective = effective_spec(sandbox, situation.source, recorded=recorded)
        self.spec = self.effective.spec
        self.draft = Draft(sandbox, now=now)
        self.image = sandbox_image(self.spec, installation=installation)
        self._notices: list[Notice] = []
        self._cold = ""

    # Questions

    @property
    def uid(self) -> str:
        return self.sandbox.metadata.uid

    @property
    def current(self) -> bool:
        """The status speaks of the pod that is there: its end has not been accounted for."""
        return self.pod is not None and self.status.pod_uid == self.pod.uid

    @property
    def bound(self) -> bool:
        """The status says that the runtime of this very pod has answered."""
        return self.current and self.status.started_at is not None

    @property
    def bind(self) -> Answer | None:
        """What the runtime of this very pod said to the bind, as long as the status does not say it."""
        return None if self.bound else self.answer_to(Errand.BIND)

    @property
    def setting_up(self) -> bool:
        """The runtime is ours, and the commands of spec.setup have not ended yet."""
        bind, setup = self.bind, self.answer_to(Errand.SETUP)
        if bind is None or bind.outcome is not Outcome.DONE or not self.spec.setup:
            return False
        result = (setup or bind).setup
        return result is None or result.state == "Running"

    @property
    def alive(self) -> bool:
        """People work in it, or could."""
        bind = self.bind
        return self.bound or (bind is not None and bind.outcome is Outcome.DONE and not self.setting_up)

    @property
    def knows_files_and_network(self) -> bool:
        """Without the template, only a pod that was made from it says what it is to have."""
        made_from_it = self.pod is not None and self.pod.template is not None
        return self.effective.trouble is None or made_from_it

    @property
    def was_setting_up(self) -> bool:
        """The runtime of this very pod has been ours before, as the status says, and had setup to do."""
        setup = self.status.setup
        return self.current and not self.bound and setup is not None and setup.result == "Running"

    def answer_to(self, errand: Errand, *, subject: str | None = None) -> Answer | None:
        """Of this very pod's runtime; about this very subject, if one is given."""
        answer = self._answers.get(errand)
        if answer is None or self.pod is None or answer.pod_uid != self.pod.uid:
            return None
        return answer if subject is None or answer.subject == subject else None

    def refusal_of(self, kind: Kind) -> Refusal | None:
        """The API server's no to what this very spec wants, while it holds."""
        refusal = self._refusals.get(kind.plural)
        if refusal is None or refusal.sandbox_uid != self.uid:
            return None
        fits = refusal.generation == self.sandbox.metadata.generation
        return refusal if fits and self._is_near(refusal.retry_at) else None

    @property
    def refusal(self) -> Refusal | None:
        return self.refusal_of(POD)

    @property
    def start_at(self) -> datetime | None:
        """When the next start may be tried, if that is not yet; a changed spec is tried at once."""
        due = self.status.next_start_at
        waits = due is not None and self._is_near(due)
        changed = self.status.observed_generation != self.sandbox.metadata.generation
        return due if waits and not changed else None

    def _is_near(self, moment: datetime) -> bool:
        # No pause is longer. A moment further away is from before a clock was put back.
        return self.now < moment <= self.now + LONGEST_PAUSE

    @property
    def wake(self) -> str:
        """The wake request that has not been fulfilled; empty without one."""
        wanted = self.sandbox.metadata.annotations.get(ANNOTATION_WAKE, "")[:256]
        return wanted if wanted != (self.status.wake_observed or "") else ""

    @property
    def stays_asleep(self) -> bool:
        """It sleeps, and nothing is there that would wake it."""
        if self.pod is not None or self.status.asleep_since is None:
            return False
        return self.spec.paused or (not self.wake and self.status.sleep_reason != Reason.PAUSED)

    @property
    def sleep_after(self) -> float | None:
        """Seconds without work; None: it never sleeps by itself."""
        return idle_limit(self.spec, policies=self.rules.policies)

    @property
    def sleep_after_text(self) -> str:
        return NEVER if self.sleep_after is None else durations.format(self.sleep_after)

    @property
    def disk_trouble(self) -> str | None:
        """What the runtime says about a full disk, for as long as the kubelet finds it not ready."""
        since = self.pod.unready_since if self.pod is not None else None
        answer = self.answer_to(Errand.CHECK, subject=since) if since is not None else None
        return answer.message or None if answer is not None else None

    @property
    def disk_unknown(self) -> bool:
        """The kubelet finds the runtime not ready, and it has not yet been asked why."""
        since = self.pod.unready_since if self.pod is not None else None
        return since is not None and self.answer_to(Errand.CHECK, subject=since) is None

    @property
    def claim_name(self) -> str | None:
        """The PersistentVolumeClaim of the workspace. A warm pod has brought its own."""
        workspace = self.spec.workspace
        if workspace is None or workspace.claim_name is not None:
            return workspace and workspace.claim_name
        held = self.pod.workspace_claim if self.pod is not None else None
        return held or self.status.workspace_claim or workspace_name(self.sandbox.metadata.name)

    @property
    def pool_uid(self) -> str | None:
        """Of the pool that its pod comes from, or may come from."""
        if self.pod is not None:
            return self.pod.pool_uid
        return self.offer.pool.metadata.uid if self.offer is not None else None

    @property
    def claim(self) -> ClaimFacts | None:
        return self._claims.get(self.claim_name or "")

    @cached_property
    def denial(self) -> Denial | None:
        """What a policy has against its next start."""
        return denial_of(self)

    def forbids(self, field: str) -> bool:
        """No change of this field is to work before a start was allowed with it."""
        return self.denial is not None and field in self.denial.fields

    @cached_property
    def wanted_pod(self) -> Json:
        """Raises BadPodTemplate."""
        return build_pod(self.spec, frame=self.frame, installation=self.installation)

    @property
    def frame(self) -> Frame:
        metadata = self.sandbox.metadata
        return Frame(
            name=metadata.name,
            namespace=metadata.namespace,
            owner=self.owner,
            labels=self.labels,
            network_uid=metadata.uid,
            claim=self.claim_name,
            template=self.effective.live,
        )

    @property
    def owner(self) -> Json:
        metadata = self.sandbox.metadata
        return owner_reference(kind=SANDBOX_KIND, name=metadata.name, uid=metadata.uid)

    @property
    def labels(self) -> dict[str, str]:
        metadata = self.sandbox.metadata
        return child_labels(
            sandbox_name=metadata.name, sandbox_uid=metadata.uid, version=self.installation.version
        )

    @property
    def outdated(self) -> bool:
        """The pod is not the one that would be made now."""
        if self.pod is None or not self.pod.pod_hash:
            return False
        try:
            if self.pod.claimed_at is not None:
                # What comes with the bind is not in a warm pod.
                return shape_of(self.spec, installation=self.installation) != self.pod.shape
            wanted = self.wanted_pod
        except BadPodTemplate:
            return True
        return wanted["metadata"]["annotations"][ANNOTATION_POD_HASH] != self.pod.pod_hash

    # Words

    def tell(self, reason: Reason, message: str, *, tone: Tone = Tone.WARNING) -> None:
        self._notices.append(Notice(tone=tone, reason=reason.value, message=message))

    def lose(self, reason: Reason, detail: str = "") -> None:
        """The pod that the status speaks of is over, and nobody wanted that."""
        self.draft.mark_lost(reason, detail)
        self.tell(reason, self._sentence(reason, detail))

    def sleep(self, reason: Reason) -> None:
        words = self.pod.words if self.pod is not None else None
        keeps = self.pod is not None and self.pod.workspace_claim is not None
        self.draft.mark_asleep(reason, words=words, keeps=keeps)
        self.tell(reason, self._sentence(reason), tone=Tone.NORMAL)

    def _sentence(self, reason: Reason, detail: str = "") -> str:
        name = self.pod.name if self.pod is not None else self.sandbox.metadata.name
        return sentence(reason, pod=name, detail=detail)

    # Ends

    def write(self, *writes: Write) -> Plan:
        return Plan(writes=writes)

    def depart(self, deletion: Write) -> Plan:
        """The sandbox itself is deleted."""
        return Plan(writes=(deletion,), notices=tuple(self._notices))

    def start_cold(self, cold: ColdStart) -> None:
        """The next pod is a new one, though the sandbox has a pool."""
        name = self.offer.pool.metadata.name if self.offer is not None else ""
        message = cold.sentence(name)
        self.tell(Reason(cold.why), message)
        self.wanted_pod["metadata"]["annotations"][ANNOTATION_COLD] = message
        self._cold = cold.why

    def create(self, pod: Json) -> Plan:
        return Plan(create_pod=pod, cold=self._cold, notices=tuple(self._notices))

    def wait(
        self,
        reason: Reason,
        detail: str = "",
        *,
        until: datetime | None = None,
        remove: Removal | None = None,
    ) -> Plan:
        """There is no pod, or is to be none, and to start one now is of no use."""
        self.draft.mark_waiting(reason, detail, until=until)
        if self.draft.ready_reason != reason:
            self.tell(reason, self._sentence(reason, detail))
        return self.settle(remove=remove, look_again_at=until)

    def settle(
        self,
        *,
        remove: Removal | None = None,
        ask: Ask | None = None,
        look_again_at: datetime | None = None,
    ) -> Plan:
        """Write the status if it has changed, tell about it, and what else there is to do."""
        if self.knows_files_and_network:
            self.draft.note_claim(self.claim_name if self.pod is None else self.pod.workspace_claim)
        status = self.draft.finish(self._verdicts())
        return Plan(
            status=status,
            # Without a change of the status there is nothing new to tell.
            notices=tuple(self._notices) if status is not None else (),
            remove_pod=remove,
            ask=ask,
            look_again_at=earliest(
                (look_again_at, self.deadline, provisioning_deadline(self), self._end_of_refusals())
            ),
        )

    def _end_of_refusals(self) -> datetime | None:
        """When what a running or sleeping sandbox was refused is tried again."""
        refusals = [self.refusal_of(kind) for kind in (CLAIM, NETWORK_POLICY)]
        return earliest(refusal.retry_at for refusal in refusals if refusal is not None)

    def ask(self, errand: Errand, *, subject: str = "") -> Ask | None:
        pod = self.pod
        if pod is None or pod.ip is None or not pod.node_responds:
            return None
        binding = errand is Errand.BIND
        return Ask(
            errand=errand,
            pod_uid=pod.uid,
            pod_name=pod.name,
            namespace=self.sandbox.metadata.namespace,
            ip=pod.ip,
            sandbox_name=self.sandbox.metadata.name,
            sandbox_uid=self.uid,
            subject=subject,
            sleep_after=self.sleep_after,
            spec_hash=spec_hash(self.spec) if binding else "",
            env=self._bind_env() if binding else {},
            processes=tuple(each.to_json() for each in self.spec.processes) if binding else (),
            setup=self.spec.setup if binding else (),
        )

    def _bind_env(self) -> dict[str, str]:
        found = environment_of(self)
        return bind_env(self.spec) if found is None or isinstance(found, Reading) else found.values

    @property
    def deadline(self) -> datetime | None:
        """When the sandbox is to be deleted."""
        lifetime, born = self.spec.lifetime, self.sandbox.metadata.creation_timestamp
        if lifetime is None:
            return None
        # One that somebody wants awake is about to be.
        asleep = self.draft.asleep_since if self.spec.paused or not self.wake else None
        return earliest(
            (
                _later(born, lifetime.max_age),
                _later(asleep, lifetime.delete_after_asleep),
            )
        )

    def _verdicts(self) -> Iterable[Verdict]:
        before = {condition.type: condition for condition in self.status.conditions}
        yield from verdicts(
            self.spec,
            overridden=self._overridden(),
            restart_pending=self._restart_pending(),
            # Without a pod, Ready says it.
            denied=self.denial.message if self.pod is not None and self.denial is not None else None,
        )
        earlier = before.get(ConditionType.WORKSPACE_READY)
        found = workspace_verdict(self, before=earlier)
        if found.reason in WORTH_AN_EVENT and earlier is not None and earlier.reason != found.reason:
            self.tell(found.reason, found.message)
        yield found
        of_pod = isolation_of_pod(self.spec, isolation=self.draft.isolation)
        earlier = before.get(ConditionType.ISOLATED)
        yield isolation_verdict(of_pod, enforcement=self._enforcement, said=earlier)

    def _overridden(self) -> list[str]:
        if self.spec.pod_template is None:
            return []
        try:
            return overridden_fields(self.spec.pod_template, self.wanted_pod)
        except BadPodTemplate:
            return []

    def _restart_pending(self) -> str | None:
        made_from = self.draft.running_spec_hash
        if self.effective.trouble is not None or made_from in (None, spec_hash(self.spec)):
            return None
        name, namespace = self.draft.pod_name, self.sandbox.metadata.namespace
        return (
            f"The pod was made from an earlier spec or template, and goes on so that no work in it is lost. "
            f"The next start uses the present one; to start it now: kubectl delete pod {name} -n {namespace}."
        )


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _later(moment: datetime | None, seconds: float | None) -> datetime | None:
    return moment + timedelta(seconds=seconds) if moment is not None and seconds is not None else None
