"""What becomes of a pass that failed, over a sandbox or a pool: it is counted, tried again later and later,
and said in the log as far as somebody has to know.
"""

import logging

from sandpod_crds.errors import ApiError, Conflict

from .metrics import Passes
from .observations import Key
from .workqueue import WorkQueue

log = logging.getLogger(__name__)


def take_up(error: Exception, *, what: str, key: Key, queue: WorkQueue[Key], passes: Passes) -> None:
    passes.failures.add(reason=type(error).__name__)
    at_least = error.retry_after if isinstance(error, ApiError) else None
    delay = queue.retry(key, at_least=at_least or 0.0)
    if isinstance(error, Conflict):
        # Somebody has changed the object meanwhile; the watch may bring the new version any moment.
        return
    if isinstance(error, ApiError):
        log.warning("the %s %s: %s; again in %.1f s", what, key, error, delay)
    else:
        log.error("the %s %s: again in %.1f s", what, key, delay, exc_info=error)
