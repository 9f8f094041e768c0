"""How a runtime ends, in this order: save what shall outlive it, tell why, end what runs.

Saving comes first because the kubelet may lose its patience at any time, and killing is what needs none.
"""

import logging
import time
from collections.abc import Callable

from sandpod_runtime.disk import Disk
from sandpod_runtime.lifecycle.last_words import LastWords, encoded, write
from sandpod_runtime.lifecycle.steps import Steps, all_within

# Together, and with the farewell to open connections, well below the 30 seconds that a pod has.
_SAVING_SECONDS = 7.0
_TELLING_SECONDS = 1.0
_STOPPING_SECONDS = 3.0
_KILLING_SECONDS = 7.5

logger = logging.getLogger(__name__)


class Ending:
    def __init__(
        self,
        *,
        save: Steps,
        stop: Steps,
        kill: Steps,
        last_words: Callable[[bool], LastWords],
        termination_log: str,
        disk: Disk,
    ) -> None:
        """`save` writes, `stop` asks programs politely, `kill` leaves nothing. `last_words` is asked, when it
        is known whether all was saved, before anything is stopped.
        """
        self._save = save
        self._stop = stop
        self._kill = kill
        self._last_words = last_words
        self._termination_log = termination_log
        self._disk = disk

    async def run(self) -> None:
        begun = time.monotonic()
        saved = await all_within(_SAVING_SECONDS, self._save)
        message = encoded(self._last_words(saved))
        tell = {"tell": lambda: self._disk.run(self._tell, message)}
        await all_within(_TELLING_SECONDS, tell)
        await all_within(_STOPPING_SECONDS, self._stop)
        await all_within(_KILLING_SECONDS, self._kill)
        # Once more, for what has been killed could have written there.
        await all_within(_TELLING_SECONDS, tell)
        logger.info("all has ended", extra={"saved": saved, "seconds": round(time.monotonic() - begun, 3)})

    def _tell(self, message: bytes) -> None:
        try:
            write(self._termination_log, message)
        except OSError as error:
            logger.debug("there is no termination log", extra={"reason": error.strerror})
