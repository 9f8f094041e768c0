"""Cloning: into a new folder, of which nothing is left when it fails, or into one that was there."""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.git.program import QUICK_SECONDS, STALL, Git, Job, current_branch, failure

# A folder's device and inode.
Identity = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    url: str
    target: str
    # As the client gave it.
    shown_target: str
    branch: str | None
    depth: int | None
    partial: bool
    job: Job


class Cloner:
    def __init__(self, *, git: Git, disk: Disk) -> None:
        self._git = git
        self._disk = disk
        # Removals that outlive the request of a client that hung up.
        self._removals: set[asyncio.Task[None]] = set()

    async def clone(self, order: Order, *, tell: Callable[[bytes], None] | None = None) -> str:
        """Returns what is checked out: a branch, a tag or "unknown". `tell` gets git's standard error."""
        made = await self._make(order)
        over = asyncio.Event()
        try:
            found = await self._git.run(order.job, _arguments(order), on_stderr=tell, on_end=over.set)
            if found.exit_code != 0:
                raise failure(order.job, found)
            place = replace(order.job, directory=order.target, timeout=QUICK_SECONDS, secret=None)
            return await current_branch(self._git, place) or order.branch or "unknown"
        except asyncio.CancelledError:
            # The client hung up: git is still being ended, and would write behind our back.
            removal = asyncio.create_task(self._remove(order.target, made, after=over))
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)
            raise
        except BaseException:
            await self._remove(order.target, made)
            raise

    async def _make(self, order: Order) -> Identity | None:
        try:
            return await self._disk.run(_make, order.target)
        except OSError as error:
            raise fault_of(error, path=order.target, operation="git.clone") from error

    async def _remove(
        self, target: str, made: Identity | None, *, after: asyncio.Event | None = None
    ) -> None:
        if after is not None:
            await after.wait()
        if made is not None:
            await self._disk.run(_remove, target, made)


def _arguments(order: Order) -> list[str]:
    arguments = [*STALL, "clone", "--progress"]
    if order.partial:
        arguments.append("--filter=blob:none")
    if order.branch:
        arguments.append(f"--branch={order.branch}")
    if order.depth:
        arguments.append(f"--depth={order.depth}")
    return [*arguments, "--", order.url, order.target]


def _make(target: str) -> Identity | None:
    """The identity of the folder that was made; None when there was something already."""
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", error.filename) from error
    try:
        Path(target).mkdir()
    except FileExistsError:
        return None
    found = os.lstat(target)
    return found.st_dev, found.st_ino


def _remove(target: str, made: Identity) -> None:
    try:
        found = os.lstat(target)
    except OSError:
        return  # git has tidied up itself
    # Somebody may have put another one in its place.
    if (found.st_dev, found.st_ino) == made:
        shutil.rmtree(target, ignore_errors=True)
