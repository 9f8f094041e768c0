"""Whether the disk is full: the kubelet finds the runtime not ready, and the runtime says why. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from .observations import Answer
from .times import still_to_come

# A pod that was never ready, or still is not, may have filled its disk since it was asked.
KNOWN_FOR = timedelta(seconds=20)


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    # Since when the kubelet finds the runtime not ready; None when it does not.
    unready_since: str | None
    # What the runtime has said when it was asked why.
    told: Answer | None
    now: datetime

    @property
    def trouble(self) -> str | None:
        """What the runtime says about a full disk, for as long as the kubelet finds it not ready."""
        return self.told.message or None if self.told is not None else None

    @property
    def is_unknown(self) -> bool:
        """The kubelet finds the runtime not ready, and it has not yet been asked why."""
        return self.unready_since is not None and self.told is None

    @property
    def is_to_be_asked(self) -> bool:
        """It is not known why the kubelet finds it not ready, or was asked long ago."""
        return self.is_unknown or (self.told is not None and not self.trouble and self.ask_again_at is None)

    @property
    def ask_again_at(self) -> datetime | None:
        """Of one whose disk had room when it was asked."""
        if self.told is None or self.told.message:
            return None
        return still_to_come(self.told.at + KNOWN_FOR, now=self.now, within=KNOWN_FOR)
