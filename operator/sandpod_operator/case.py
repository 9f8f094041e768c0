"""One sandbox as decide sees it: what is known at this moment, the questions that the lifecycle asks of it,
and the ways in which a decision ends. No I/O, no clock.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sandpod_crds.models import Sandbox

from .conditions import verdicts
from .errors import BadPodTemplate
from .objects import Json
from .observations import Answer, Answered, Key, Refusal
from .plan import Ask, Notice, Plan, Removal, Tone
from .pods import ANNOTATION_POD_HASH, PodFacts
from .reasons import Reason
from .resources.pod import bind_env, build_pod, overridden_fields, sandbox_image, spec_hash
from .settings import Installation
from .status import Draft


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known about one key. `pod` is whatever pod of ours has the sandbox's name, whoever owns it."""

    key: Key
    sandbox: Sandbox | None = None
    # Whoever deletes the sandbox wants its pod to stay (kubectl delete --cascade=orphan).
    orphaning: bool = False
    # The UID of a sandbox of this name whose deletion was seen.
    departed: str | None = None
    pod: PodFacts | None = None
    answer: Answer | None = None
    refusal: Refusal | None = None


class Case:
    """A sandbox that exists and is to go on existing."""

    def __init__(
        self, situation: Situation, sandbox: Sandbox, *, now: datetime, installation: Installation
    ) -> None:
        self.now = now
        self.sandbox = sandbox
        self.spec = sandbox.spec
        self.status = sandbox.status
        self.pod = situation.pod
        self.settings = installation.settings
        self.draft = Draft(sandbox, now=now)
        self.image = sandbox_image(sandbox.spec, installation=installation)
        self._installation = installation
        self._answer = situation.answer
        self._refusal = situation.refusal
        self._notices: list[Notice] = []

    # Questions

    @property
    def current(self) -> bool:
        """The status speaks of the pod that is there: its end has not been accounted for."""
        return self.pod is not None and self.status.pod_uid == self.pod.uid

    @property
    def bound(self) -> bool:
        """The status says that the runtime of this very pod has answered."""
        return self.current and self.status.started_at is not None

    @property
    def answer(self) -> Answer | None:
        """What the runtime of this very pod said, as long as the status does not say it."""
        fits = self.pod is not None and self._answer is not None and self._answer.pod_uid == self.pod.uid
        return self._answer if fits and not self.bound else None

    @property
    def alive(self) -> bool:
        answer = self.answer
        return self.bound or (answer is not None and answer.outcome is Answered.BOUND)

    @property
    def refusal(self) -> Refusal | None:
        """The API server's no to the pod of this very spec, while it holds."""
        refusal = self._refusal
        if refusal is None or refusal.sandbox_uid != self.sandbox.metadata.uid:
            return None
        fits = refusal.generation == self.sandbox.metadata.generation and self.now < refusal.retry_at
        return refusal if fits else None

    @property
    def start_at(self) -> datetime | None:
        """When the next start may be tried, if that is not yet; a changed spec is tried at once."""
        due = self.status.next_start_at
        waits = due is not None and self.now < due
        changed = self.status.observed_generation != self.sandbox.metadata.generation
        return due if waits and not changed else None

    @cached_property
    def wanted_pod(self) -> Json:
        """Raises BadPodTemplate."""
        return build_pod(self.sandbox, installation=self._installation)

    @property
    def outdated(self) -> bool:
        """The pod is not the one that would be made now."""
        if self.pod is None or not self.pod.pod_hash:
            return False
        try:
            wanted = self.wanted_pod
        except BadPodTemplate:
            return True
        return wanted["metadata"]["annotations"][ANNOTATION_POD_HASH] != self.pod.pod_hash

    # Words

    def tell(self, reason: Reason, message: str, *, tone: Tone = Tone.WARNING) -> None:
        self._notices.append(Notice(tone=tone, reason=reason.value, message=message))

    # Ends

    def create(self, pod: Json) -> Plan:
        return Plan(create_pod=pod)

    def settle(
        self, *, remove: Removal | None = None, ask: Ask | None = None, look_again_at: datetime | None = None
    ) -> Plan:
        """Write the status if it has changed, tell about it, and what else there is to do."""
        status = self.draft.finish(
            verdicts(self.spec, overridden=self._overridden(), restart_pending=self._restart_pending())
        )
        return Plan(
            status=status,
            # Without a change of the status there is nothing new to tell.
            notices=tuple(self._notices) if status is not None else (),
            remove_pod=remove,
            ask=ask,
            look_again_at=look_again_at,
        )

    def ask(self) -> Ask | None:
        pod = self.pod
        if pod is None or pod.ip is None or not pod.node_responds:
            return None
        return Ask(
            pod_uid=pod.uid,
            pod_name=pod.name,
            namespace=self.sandbox.metadata.namespace,
            ip=pod.ip,
            sandbox_name=self.sandbox.metadata.name,
            sandbox_uid=self.sandbox.metadata.uid,
            spec_hash=spec_hash(self.spec),
            env=bind_env(self.spec),
        )

    def _overridden(self) -> list[str]:
        if self.spec.pod_template is None:
            return []
        try:
            return overridden_fields(self.spec.pod_template, self.wanted_pod)
        except BadPodTemplate:
            return []

    def _restart_pending(self) -> str | None:
        made_from = self.draft.running_spec_hash
        if made_from is None or made_from == spec_hash(self.spec):
            return None
        name, namespace = self.sandbox.metadata.name, self.sandbox.metadata.namespace
        return (
            f"The pod was made from an earlier spec, and goes on so that no work in it is lost. To "
            f"start it anew with this one: kubectl delete pod {name} -n {namespace}."
        )
