"""One sandbox as decide sees it: the questions that can be asked of it, the words in which a decision is
written down, and the ways in which it ends. No I/O, no clock.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property

from sandpod_crds.models import PortStatus, Sandbox
from sandpod_crds.names import ANNOTATION_WAKE, ConditionType

from .conditions import Verdict, honored, verdict
from .errors import BadPodTemplate
from .exposure import exposed_ports, preview_verdict
from .fence import network_trouble
from .isolation import isolation_of_pod, isolation_verdict
from .kinds import CLAIM, INGRESS, NETWORK_POLICY
from .objects import Json, digest
from .observations import Errand
from .permission import denial_of
from .plan import Ask, Notice, Plan, Removal, Tone, Write
from .pods import ANNOTATION_COLD
from .policy import Denial
from .pool.claim import ColdStart, Reading
from .pool.take import environment_of, record_due_at
from .questions import Questions
from .reasons import Reason, sentence
from .resources.pod import bind_env, overridden_fields, spec_hash, with_bind_nonce
from .settings import Installation
from .situation import Situation
from .status import Draft
from .workspace import provisioning_deadline
from .workspace_condition import WORTH_AN_EVENT, workspace_verdict


class Case(Questions):
    """A sandbox that exists and is to go on existing."""

    def __init__(
        self, situation: Situation, sandbox: Sandbox, *, now: datetime, installation: Installation
    ) -> None:
        super().__init__(situation, sandbox, now=now, installation=installation)
        self.draft = Draft(sandbox, now=now, names=self.names)
        self._enforcement = situation.enforcement
        self._notices: list[Notice] = []
        self._cold = ""

    @cached_property
    def denial(self) -> Denial | None:
        """What a policy has against its next start."""
        return denial_of(self)

    @cached_property
    def ports(self) -> tuple[PortStatus, ...]:
        """Those that are exposed, with their URLs."""
        return exposed_ports(self)

    def forbids(self, field: str) -> bool:
        """No change of this field is to work before a start was allowed with it."""
        return self.denial is not None and field in self.denial.fields

    # Words

    def tell(self, reason: Reason, detail: str = "", *, tone: Tone = Tone.WARNING) -> None:
        """In an event."""
        self._notices.append(self.notice(reason, detail, tone=tone))

    def tell_once(self, reason: Reason, detail: str = "") -> None:
        """Unless Ready has been saying it already."""
        if self.draft.ready_reason != reason:
            self.tell(reason, detail)

    def notice(self, reason: Reason, detail: str = "", *, tone: Tone = Tone.WARNING) -> Notice:
        return Notice(
            tone=tone, reason=reason.value, message=sentence(reason, names=self.names, detail=detail)
        )

    def lose(self, reason: Reason, detail: str = "") -> None:
        """The pod that the status speaks of is over, and nobody wanted that."""
        self.draft.mark_lost(reason, detail)
        self.tell(reason, detail)

    def sleep(self, reason: Reason) -> None:
        words = self.pod.words if self.pod is not None else None
        keeps = self.pod is not None and self.pod.workspace_claim is not None
        self.draft.mark_asleep(reason, words=words, keeps=keeps)
        self.tell(reason, tone=Tone.NORMAL)

    def take_up_the_wake(self) -> None:
        """With a start: the bind will tell of it. One may be under way already that does not."""
        if self.pod is not None and self.pod.running_since is None:
            self.draft.observe_wake(self.wake)

    def fulfil_the_wake(self) -> None:
        """If the bind has told the runtime of it. One that came later it has yet to hear of, or it could fall
        asleep before anybody comes.
        """
        if self.bind is not None and self.bind.wake == self.wake:
            self.draft.observe_wake(self.wake)

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
        counts = (self.status.wakes, self.status.restarts)
        nonce = digest([self.uid, *counts, self.now.isoformat()])
        pod = with_bind_nonce(pod, nonce, key=self.installation.key)
        return Plan(create_pod=pod, cold=self._cold, notices=tuple(self._notices))

    def wait(
        self,
        reason: Reason,
        detail: str = "",
        *,
        until: datetime | None = None,
        remove: Removal | None = None,
        look_again_at: datetime | None = None,
    ) -> Plan:
        """There is no pod, or is to be none, and to start one now is of no use."""
        self.draft.mark_waiting(reason, detail, until=until)
        self.tell_once(reason, detail)
        return self.settle(remove=remove, look_again_at=until or look_again_at)

    def settle(
        self,
        *,
        remove: Removal | None = None,
        ask: Ask | None = None,
        look_again_at: datetime | None = None,
    ) -> Plan:
        """Write the status if it has changed, tell about it, and what else there is to do."""
        if self.knows_files_and_network:
            self.draft.note_claim(self._volume_to_keep())
        self.draft.note_ports(self.ports)
        status = self.draft.finish(self._verdicts())
        return Plan(
            status=status,
            # Without a change of the status there is nothing new to tell.
            notices=tuple(self._notices) if status is not None else (),
            remove_pod=remove,
            ask=ask,
            look_again_at=earliest(
                (
                    look_again_at,
                    self.deadline,
                    provisioning_deadline(self),
                    self._end_of_refusals(),
                    record_due_at(self),
                )
            ),
        )

    def _volume_to_keep(self) -> str | None:
        """Where its files are, or will be. By this alone a pool knows that a volume is not its own any more:
        it is not let go of before that is written on the volume, and what another has is not named.
        """
        if self.brought is not None and self.brought.of_pool:
            return self.brought.name
        if self.pod is not None:
            return self.pod.workspace_claim
        return self.status.workspace_claim if self.holder is not None else self.claim_name

    def _end_of_refusals(self) -> datetime | None:
        """When what a running or sleeping sandbox was refused is tried again."""
        refusals = [self.refusal_of(kind) for kind in (CLAIM, NETWORK_POLICY, INGRESS)]
        refusals += (self.refusal_of_labels, self.refusal_of_owner)
        return earliest(refusal.retry_at for refusal in refusals if refusal is not None)

    def ask(self, errand: Errand, *, subject: str = "") -> Ask | None:
        pod = self.pod
        if pod is None or pod.ip is None or not pod.node_responds:
            return None
        binding = errand is Errand.BIND
        if binding and pod.running_since is None:
            # What listens before the runtime can have been started is something else, and gets no secret.
            return None
        return Ask(
            errand=errand,
            pod_uid=pod.uid,
            pod_name=pod.name,
            namespace=self.sandbox.metadata.namespace,
            ip=pod.ip,
            sandbox_name=self.sandbox.metadata.name,
            sandbox_uid=self.uid,
            bind_nonce=pod.bind_nonce,
            subject=subject,
            sleep_after=self.sleep_after,
            spec_hash=spec_hash(self.spec) if binding else "",
            wake=self.sandbox.metadata.annotations.get(ANNOTATION_WAKE, "")[:256] if binding else "",
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
        # One that somebody wants awake is about to be, unless it may not.
        stays = self.spec.paused or not self.wake or self.draft.waits
        asleep = self.draft.asleep_since if stays else None
        return earliest(
            (
                _later(born, lifetime.max_age),
                _later(asleep, lifetime.delete_after_asleep),
            )
        )

    @property
    def which_lifetime(self) -> str:
        """That has come to its end by then."""
        lifetime, born = self.spec.lifetime, self.sandbox.metadata.creation_timestamp
        end = _later(born, lifetime.max_age) if lifetime is not None else None
        old = end is not None and end <= self.now
        return "lifetime.maxAge is over." if old else "lifetime.deleteAfterAsleep is over."

    def _verdicts(self) -> Iterable[Verdict]:
        before = {condition.type: condition for condition in self.status.conditions}
        yield honored(
            self.spec,
            overridden=self._overridden(),
            restart_pending=self._restart_pending(),
            denied=self._denied(),
        )
        yield preview_verdict(self, before=before.get(ConditionType.PREVIEW_READY))
        earlier = before.get(ConditionType.WORKSPACE_READY)
        found = workspace_verdict(self, before=earlier)
        # A warm pod is told of with the first status that there is.
        is_news = earlier.reason != found.reason if earlier is not None else self.pod is not None
        # As the obstacle of a start it may have been told already.
        told = any(each.reason == found.reason for each in self._notices)
        if found.reason in WORTH_AN_EVENT and is_news and not told:
            self._notices.append(Notice(tone=Tone.WARNING, reason=found.reason.value, message=found.message))
        yield found
        if (trouble := network_trouble(self)) is not None:
            of_pod = verdict(ConditionType.ISOLATED, False, *trouble, names=self.names)
        else:
            of_pod = isolation_of_pod(self.spec, isolation=self.draft.isolation)
        earlier = before.get(ConditionType.ISOLATED)
        yield isolation_verdict(of_pod, enforcement=self._enforcement, said=earlier)

    def _denied(self) -> str | None:
        """Without a pod, Ready says it; without its template, nobody knows what the next start will be."""
        if self.pod is None or self.effective.trouble is not None or self.denial is None:
            return None
        return self.denial.message

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
