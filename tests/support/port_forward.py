"""A port of loopback that leads to a Service in the cluster."""

import contextlib
import re
import subprocess
from collections.abc import Generator

from tests.support.cluster import ROOT, environment


@contextlib.contextmanager
def port_forward(target: str, port: str, *, namespace: str) -> Generator[str]:
    """The base address, for as long as the context lasts."""
    process = subprocess.Popen(
        ["kubectl", "-n", namespace, "port-forward", target, f":{port}", "--address=127.0.0.1"],
        env=environment(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"Forwarding from (127\.0\.0\.1:\d+)", line)
        assert found is not None, line
        yield f"http://{found[1]}"
    finally:
        process.terminate()
        process.communicate(timeout=10)
