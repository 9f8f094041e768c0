"""The runtime says whether its commands are isolated, and why not."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import user_namespace
from tests.support.runtime import Runtime

Json = dict[str, Any]


def told(runtime: Runtime) -> Json:
    with urllib.request.urlopen(f"{runtime.url}/api/lifecycle") as response:
        return json.load(response)["isolation"]


def test_a_world_of_its_own_is_complete(strict: Callable[..., Runtime]) -> None:
    assert told(strict()) == {"mode": "strict", "complete": True}


def test_without_being_asked_it_is_standard(start: Callable[..., Runtime]) -> None:
    assert told(start()) == {"mode": "standard", "complete": True}


def test_without_a_user_namespace_it_says_so_and_is_the_user_all_the_same(
    start: Callable[..., Runtime],
) -> None:
    runtime = start(prefix=user_namespace.prefix(shared=True), arguments=["--strict", "65534"])
    found = told(runtime)
    assert (found["mode"], found["complete"]) == ("strict", False)
    assert "user namespace" in found["reason"]
    data = b'{"command": "id -u; grep CapPrm /proc/self/status"}'
    with urllib.request.urlopen(f"{runtime.url}/api/execute", data=data) as response:
        assert json.load(response)["stdout"].split() == ["65534", "CapPrm:", "0" * 16]
    status = Path(f"/proc/{runtime.pid}/status").read_text(encoding="ascii")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == {"65534"}
    assert (int(fields["CapPrm"], 16), int(fields["CapBnd"], 16)) == (0, 0)


def test_without_a_user_namespace_nobody_is_root(start: Callable[..., Runtime]) -> None:
    with pytest.raises(RuntimeError, match="root of the node"):
        start(arguments=["--strict", "0"])
