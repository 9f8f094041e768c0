"""Follows one Sandbox through its changes by watching it: nothing is ever polled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sandpod import _requests
from sandpod._client import Client
from sandpod._duration import format_duration
from sandpod._observation import Observation, observe
from sandpod._watch import Expired
from sandpod.errors import NotFound, TimedOut, Unavailable

Json = dict[str, Any]

# Between two tries to reach an API server that is away; a wait for it is a wait for somebody to repair it.
_RETRY_SECONDS = 1.0


def states(client: Client, *, sandbox: Json, deadline: float) -> Iterator[Json | None]:
    """The object as it is given, then at each change; None, as the last, when it is gone.

    Ends silently at the deadline (of time.monotonic). One of the same name that was made since is not
    this one.
    """
    yield sandbox
    metadata: Json = sandbox["metadata"]
    version: str = str(metadata.get("resourceVersion") or "")
    while (left := deadline - time.monotonic()) > 0:
        try:
            if not version:
                listed = client.send(
                    _requests.list_page(namespace=metadata["namespace"], name=metadata["name"])
                )
                version = str(listed["metadata"]["resourceVersion"])
                if [item["metadata"]["uid"] for item in listed["items"]] != [metadata["uid"]]:
                    break
                yield listed["items"][0]
            for event in client.watch(_bounded(metadata, version=version, seconds=left)):
                sandbox = event["object"]
                version = str(sandbox["metadata"]["resourceVersion"])
                if event["type"] == "BOOKMARK":
                    continue
                if event["type"] == "DELETED" or sandbox["metadata"]["uid"] != metadata["uid"]:
                    yield None
                    return
                yield sandbox
        except NotFound:
            break
        except Expired:
            version = ""
        except Unavailable:
            # Also silence until the deadline, which is what a wait in vain looks like: then there is no
            # pause.
            time.sleep(max(0.0, min(_RETRY_SECONDS, deadline - time.monotonic())))
    else:
        return
    yield None


def wait_ready(
    client: Client,
    *,
    sandbox: Json,
    timeout: float,
    waited: float = 0.0,
    on_change: Callable[[Json], object] | None = None,
) -> Json:
    """The object when it can run commands."""
    return wait_until(
        client,
        sandbox=sandbox,
        done=lambda state: observe(state).ready,
        wanted="Ready",
        timeout=timeout,
        waited=waited,
        on_change=on_change,
    )


def wait_until(
    client: Client,
    *,
    sandbox: Json,
    done: Callable[[Json], bool],
    wanted: str,
    timeout: float,
    waited: float = 0.0,
    on_change: Callable[[Json], object] | None = None,
) -> Json:
    """The object as soon as it is `done`. `on_change` gets it whenever it says something new about itself.

    `waited`: for how long the caller has done so already, which belongs into the message.
    """
    subject = _requests.subject(namespace=sandbox["metadata"]["namespace"], name=sandbox["metadata"]["name"])
    seen: Observation | None = None
    for state in states(client, sandbox=sandbox, deadline=time.monotonic() + timeout):
        if state is None:
            raise NotFound(f"The {subject} was deleted while it was waited for.")
        sandbox = state
        now = observe(state)
        if on_change is not None and now != seen:
            on_change(state)
        seen = now
        if done(state):
            return state
    took, why = format_duration(waited + timeout), str(seen).rstrip(".")
    raise TimedOut(f"The {subject} is not {wanted} after {took}: {why}.", last=sandbox)


def wait_gone(client: Client, *, sandbox: Json, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    if any(state is None for state in states(client, sandbox=sandbox, deadline=deadline)):
        return
    subject = _requests.subject(namespace=sandbox["metadata"]["namespace"], name=sandbox["metadata"]["name"])
    raise TimedOut(
        f"The {subject} is being deleted and still there after {format_duration(timeout)}.", last=sandbox
    )


def _bounded(metadata: Json, *, version: str, seconds: float) -> _requests.Request:
    """A watch that neither side leaves open beyond the deadline."""
    request = _requests.watch(
        namespace=metadata["namespace"], name=metadata["name"], resource_version=version
    )
    if seconds >= _requests.WATCH_SECONDS:
        return request
    return replace(
        request, query={**request.query, "timeoutSeconds": str(int(seconds) + 1)}, read_timeout=seconds
    )
