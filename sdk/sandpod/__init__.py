"""Sandpod's SDK: Linux computers in a Kubernetes cluster.

from sandpod import Sandbox

sandbox = Sandbox.create("demo")
print(sandbox.exec("uname -a").stdout)
sandbox.delete()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sandpod._version import VERSION
from sandpod.errors import SandpodError

if TYPE_CHECKING:
    from sandpod._client import Client
    from sandpod._exposing import ExposedPort
    from sandpod._results import ExecResult, Output
    from sandpod._stream import ExecStream
    from sandpod.sandbox import Sandbox

__version__ = VERSION

__all__ = [
    "Client",
    "ExecResult",
    "ExecStream",
    "ExposedPort",
    "Output",
    "Sandbox",
    "SandpodError",
    "__version__",
]

_HOMES = {
    "Client": "sandpod._client",
    "ExecResult": "sandpod._results",
    "ExecStream": "sandpod._stream",
    "ExposedPort": "sandpod._exposing",
    "Output": "sandpod._results",
    "Sandbox": "sandpod.sandbox",
}


def __getattr__(name: str) -> Any:
    # On first use, because the CLI is in this package, too, and its help should not wait for an HTTP client.
    if name not in _HOMES:
        raise AttributeError(f"module 'sandpod' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
