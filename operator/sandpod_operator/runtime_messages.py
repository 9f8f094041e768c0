"""What the operator and a runtime say to each other, as JSON: the bind's body, and what of an answer is worth
keeping. Pure. Code in the sandbox may have had a hand in an answer.
"""

from typing import Any, cast

from .objects import Json, entries
from .observations import Walls
from .plan import Ask

LONGEST_MESSAGE = 3000
# Whoever has asked for a sandbox learns from its status that it is awake, which takes a while in a busy
# cluster: with sleepAfter: 1s it could sleep again before anybody has come, and so for ever.
EXPECT_SECONDS = 10.0


def binding(ask: Ask, secret: str) -> Json:
    return {
        "sandbox": {"namespace": ask.namespace, "name": ask.sandbox_name, "uid": ask.sandbox_uid},
        "pod": {"name": ask.pod_name, "uid": ask.pod_uid},
        "credential": secret,
        "env": ask.env,
        "lifecycle": lifecycle(ask),
        "expectSeconds": EXPECT_SECONDS if ask.wake else 0,
        "processes": [_process(each) for each in ask.processes],
        "setup": list(ask.setup),
    }


def lifecycle(ask: Ask) -> Json:
    return {"sleepAfterSeconds": ask.sleep_after, "keepAlive": ask.sleep_after is None}


def _process(declared: Json) -> Json:
    """As the runtime wants it: variables as a map, as in a command's request."""
    variables = {each["name"]: each.get("value") or "" for each in entries(declared, "env")}
    return {**declared, "env": variables}


def walls(body: Json) -> Walls | None:
    found = record(body.get("isolation"))
    if not found:
        return None
    return Walls(
        strict=found.get("mode") == "strict",
        complete=found.get("complete") is True,
        reason=word(found.get("reason"), longest=LONGEST_MESSAGE),
    )


def setup_message(setup: Json) -> str:
    step, code = word(setup.get("step")), word(setup.get("exitCode"))
    command, output = word(setup.get("command"), longest=200), word(setup.get("output"), longest=2000)
    return f"step {step} ({command}) ended with code {code}: {output.strip()}"


def disk_message(disk: Json) -> str:
    free, total = word(disk.get("free")), word(disk.get("total"))
    return f"{free} of {total} bytes are free."


def is_unwritable(body: Json) -> bool:
    """The workspace, as an answer to a bind has it. A runtime that says nothing has none, or is older."""
    return record(body.get("disk")).get("writable") is False


def record(found: Any) -> Json:
    return cast("Json", found) if isinstance(found, dict) else {}


def word(found: Any, *, longest: int = 64) -> str:
    """Of an answer that may be hostile: text that the API server takes."""
    text = str(found) if isinstance(found, str | int | float) else ""
    return text[:longest].encode(errors="replace").decode().replace("\0", "")
