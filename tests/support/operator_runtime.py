"""The runtimes of a cluster in memory, and who asks them for the operator."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sandpod_operator.observations import Answer, Errand, Key, Outcome, SetupResult
from sandpod_operator.plan import Ask


@dataclass(kw_only=True)
class Runtime:
    """What the runtime in a pod holds."""

    bound: bool = False
    # The UID of the sandbox that it was bound to.
    sandbox_uid: str = ""
    # It has decided to sleep, and takes no more requests.
    draining: bool = False
    sleep_after: float | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    # For so long nobody has worked in it when it ends.
    quiet_for: timedelta = timedelta(0)
    # Told to sleep, and why
    sleepy: str = ""

    def hear(self, ask: Ask, *, now: datetime) -> Answer:
        again, self.bound = self.bound, True
        binding = ask.errand is Errand.BIND
        if binding and self.sandbox_uid not in ("", ask.sandbox_uid):
            return Answer(
                pod_uid=ask.pod_uid,
                errand=ask.errand,
                outcome=Outcome.REFUSED,
                at=now,
                message="it is bound to another sandbox.",
            )
        self.sandbox_uid = ask.sandbox_uid
        done = binding or not self.draining
        if done and ask.errand in (Errand.BIND, Errand.ADJUST) and not (binding and again):
            self.sleep_after = ask.sleep_after
        if binding and not again:
            self.env = ask.env
        if done and ask.errand is Errand.SLEEP:
            self.sleepy = ask.subject
        return Answer(
            pod_uid=ask.pod_uid,
            errand=ask.errand,
            outcome=Outcome.DONE if done else Outcome.REFUSED,
            at=now,
            subject="" if binding and again else ask.subject,
            version="0.1.0",
            spec_hash="" if again else ask.spec_hash,
            wake="" if again else ask.wake,
            setup=SetupResult(state="Succeeded") if ask.errand is Errand.SETUP else None,
        )


class Asker:
    def __init__(self) -> None:
        self.wanted: dict[Key, Ask] = {}

    def want(self, key: Key, ask: Ask | None) -> None:
        if ask is None:
            self.wanted.pop(key, None)
        else:
            self.wanted[key] = ask
