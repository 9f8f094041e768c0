"""How many warm pods to make and which to give up: arithmetic alone, of counts. Pure.

`fresh` pods are made from the template as it is now, `old` ones from an earlier one.
"""

import math
from dataclasses import dataclass

from .pace import is_burst


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    wanted: int
    # Can be claimed now.
    fresh_ready: int = 0
    # Exist, or are being made, and cannot be claimed yet.
    fresh_starting: int = 0
    old_ready: int = 0
    old_starting: int = 0
    # Ended soon after their start and stay for a while, or were taken away by somebody: what takes their
    # place would most likely fare no better.
    held: int = 0
    # Pods that may start at a time.
    most_starting: int = 4
    # So many were claimed within the last moment.
    claims: int = 0
    # The last start was not long ago.
    started_lately: bool = False
    # The API server refuses new pods for the time being.
    refused: bool = False
    # New pods find no room, and the old ones take some.
    crowded: bool = False
    # Not even for a moment may there be more than wanted.
    limited: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    create: int = 0
    remove_fresh_starting: int = 0
    remove_fresh_ready: int = 0
    remove_old_starting: int = 0
    remove_old_ready: int = 0


def surge(counts: Counts) -> int:
    """How many more than wanted may exist while old pods are replaced."""
    if counts.limited:
        return 0
    return max(1, min(counts.most_starting, math.ceil(counts.wanted / 4)))


def reckon(counts: Counts) -> Numbers:
    surplus = max(0, counts.fresh_ready + counts.fresh_starting - counts.wanted)
    # What nobody could claim yet is the smaller loss.
    remove_starting = min(surplus, counts.fresh_starting)
    remove_ready = surplus - remove_starting
    ready = counts.fresh_ready - remove_ready
    starting = counts.fresh_starting - remove_starting
    # An old pod that is ready stays until a fresh one can take its place: the template may be changed back,
    # which is what one does when the new one does not start.
    keep_old = min(counts.old_ready, counts.wanted - ready)
    full = counts.crowded or (counts.limited and not counts.refused)
    if full and keep_old and ready + keep_old >= counts.wanted:
        # One at a time: the next one goes when a fresh one is ready.
        keep_old -= 1
    missing = counts.wanted - ready - starting
    return Numbers(
        create=0 if counts.refused else max(0, min(missing, _room(counts, ready, starting, keep_old))),
        remove_fresh_starting=remove_starting,
        remove_fresh_ready=remove_ready,
        remove_old_starting=counts.old_starting,
        remove_old_ready=counts.old_ready - keep_old,
    )


def _room(counts: Counts, ready: int, starting: int, old: int) -> int:
    held = counts.held
    return min(
        _may_start(counts, ready) - starting - held,
        counts.wanted + surge(counts) - ready - starting - old - held,
    )


def _may_start(counts: Counts, ready: int) -> int:
    """How many at a time. In a burst of claims that no starts could keep up with, each start takes CPU from
    the claims: while there are pods to give, only a few start, and only now and then.
    """
    burst = is_burst(counts.claims, most_starting=counts.most_starting)
    if not burst or ready <= counts.most_starting:
        return counts.most_starting
    return 0 if counts.started_lately else max(1, counts.most_starting // 4)
