"""What the lifecycle asks of a sandbox: whether its pod is ours, alive, outdated; whether somebody wants it;
what its spec means at this moment. Answers only: nothing here changes or decides anything.
"""

from datetime import datetime, timedelta
from functools import cached_property

from sandpod_crds import durations
from sandpod_crds.models import Sandbox
from sandpod_crds.names import ANNOTATION_WAKE, SANDBOX_KIND, child_labels

from .claims import ClaimFacts
from .disk import Disk
from .effective import Effective, effective_spec
from .errors import BadPodTemplate
from .kinds import POD, POD_LABELS, POD_OWNER, Kind
from .objects import Json, owner_reference
from .observations import Answer, Errand, Outcome, Refusal
from .pods import ANNOTATION_POD_HASH
from .policy import idle_limit
from .pool.pod import shape_of
from .reasons import Names, Reason, names_of
from .resources.claim import workspace_name
from .resources.pod import Frame, build_pod, sandbox_image
from .settings import Installation
from .situation import Situation
from .status import LONGEST_PAUSE, pause_after
from .times import still_to_come

NEVER = "never"
# A setup that was done before has ended by then, and nobody has to be told that it runs.
GLANCE = timedelta(seconds=1)
# Whoever asks for a sandbox waits no longer for its next start after a failure, which observes the request.
PATIENCE = timedelta(seconds=10)


class Questions:
    def __init__(
        self, situation: Situation, sandbox: Sandbox, *, now: datetime, installation: Installation
    ) -> None:
        self.now = now
        self.sandbox = sandbox
        self.status = sandbox.status
        self.pod = situation.pod
        self.namesake = situation.namesake
        self.surplus = situation.surplus
        self.orphans = situation.orphans
        self.network_policy = situation.network_policy
        self.others_behind = situation.others_behind
        self.ingresses = situation.ingresses
        self.rules = situation.rules
        self.installation = installation
        self.settings = installation.settings
        self._answers = situation.answers
        self._refusals = situation.refusals
        self._claims = situation.claims
        self._kept = situation.kept
        self.holder = situation.holder
        self.other_in_claim = situation.other_in_claim
        self.offer = situation.offer
        self.environment = situation.environment
        self.unwritten = situation.unwritten
        self.wall = situation.wall
        self.drain_overdue = situation.drain_overdue
        asked_for = situation.asked_for
        # By the clock on the wall as it goes now.
        self.asked_since = now - asked_for if asked_for is not None else None
        recorded = self.pod.template if self.pod is not None else None
        self.effective: Effective = effective_spec(sandbox, situation.source, recorded=recorded)
        self.spec = self.effective.spec
        self.image = sandbox_image(self.spec, installation=installation)

    @property
    def uid(self) -> str:
        return self.sandbox.metadata.uid

    @property
    def names(self) -> Names:
        return names_of(self.sandbox, pod=self.pod.name if self.pod is not None else None)

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
    def end_of_glance(self) -> datetime | None:
        """Until then it may turn out that there is no setup to wait for; None when that is over."""
        bind = self.bind
        return self.still_to_come(bind.at + GLANCE, within=GLANCE) if bind is not None else None

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
        return self._refusal(kind.plural)

    @property
    def refusal_of_labels(self) -> Refusal | None:
        """The API server's no to a change of the pod that is there."""
        return self._refusal(POD_LABELS)

    @property
    def refusal_of_owner(self) -> Refusal | None:
        return self._refusal(POD_OWNER)

    def _refusal(self, matter: str) -> Refusal | None:
        refusal = self._refusals.get(matter)
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
        due, failures = self.status.next_start_at, self.status.start_failures
        if due is not None and failures and self.wake:
            due = min(due, due - pause_after(failures) + PATIENCE)
        waits = due is not None and self._is_near(due)
        changed = self.status.observed_generation != self.sandbox.metadata.generation
        return due if waits and not changed else None

    def _is_near(self, moment: datetime) -> bool:
        return self.still_to_come(moment, within=LONGEST_PAUSE) is not None

    def still_to_come(self, moment: datetime, *, within: timedelta) -> datetime | None:
        return still_to_come(moment, now=self.now, within=within)

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
    def holds_up_drains(self) -> bool:
        """What never sleeps by itself is not waited for, and nothing for ever."""
        return self.sleep_after is not None and not self.drain_overdue

    @cached_property
    def disk(self) -> Disk:
        since = self.pod.unready_since if self.pod is not None else None
        told = self.answer_to(Errand.CHECK, subject=since) if since is not None else None
        return Disk(unready_since=since, told=told, now=self.now)

    @property
    def claim_name(self) -> str | None:
        """The PersistentVolumeClaim of the workspace. A warm pod has brought its own."""
        workspace = self.spec.workspace
        if workspace is None or workspace.claim_name is not None:
            return workspace and workspace.claim_name
        held = self.pod.workspace_claim if self.pod is not None else None
        known = held or self.status.workspace_claim or self._kept
        return known or workspace_name(self.sandbox.metadata.name)

    @property
    def claim(self) -> ClaimFacts | None:
        return self._claims.get(self.claim_name or "")

    @property
    def brought(self) -> ClaimFacts | None:
        """What the status names, if a warm pod may have brought it, whatever the spec says now."""
        name = self.status.workspace_claim
        # That is named before there is one.
        own = workspace_name(self.sandbox.metadata.name)
        return self._claims.get(name) if name is not None and name != own else None

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
            protected=self.holds_up_drains,
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
        if self._is_of_another_template and not self.setting_up and not self.was_setting_up:
            return True
        try:
            if self.pod.claimed_at is not None:
                # What comes with the bind is not in a warm pod.
                return shape_of(self.spec, installation=self.installation) != self.pod.shape
            return self._wanted_pod_hash() != self.pod.pod_hash
        except BadPodTemplate:
            return True

    @property
    def _is_of_another_template(self) -> bool:
        """What works on a running sandbox, it has from a template as it is no more."""
        recorded = self.pod.template if self.pod is not None else None
        return recorded is not None and self.effective.live not in (None, recorded)

    def _wanted_pod_hash(self) -> str:
        return self.installation.memo.recall(
            ("pod", self.uid),
            (self.spec, self.frame),
            lambda: self.wanted_pod["metadata"]["annotations"][ANNOTATION_POD_HASH],
        )
