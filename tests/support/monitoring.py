"""What the chart gives to Prometheus and Grafana, rendered by Helm, and the names of metrics in it."""

import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "charts/sandpod/dashboards/sandpod.json"
ALL = ("serviceMonitor", "rules", "dashboard")
NAME = re.compile(r"\b(?:sandpod_(?:operator|gateway)|process)_\w+")
SERIES_OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def helm() -> str:
    """The one of `make cluster`, or any."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    ours = Path(os.environ.get("SANDPOD_CACHE") or Path(cache) / "sandpod") / "bin/helm"
    found = str(ours) if ours.exists() else shutil.which("helm")
    if found is None:
        pytest.skip("helm is not installed: make cluster brings it")
    return found


@functools.cache
def rendered(*settings: str) -> tuple[Json, ...]:
    """The objects of the chart with all of monitoring on, and these values."""
    given = [f"metrics.{each}.enabled=true" for each in ALL]
    options = [part for each in (*given, *settings) for part in ("--set", each)]
    command = [helm(), "template", "sandpod", str(ROOT / "charts/sandpod"), "--namespace", "system", *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return tuple(each for each in yaml.safe_load_all(text) if each)


def of_kind(kind: str, *settings: str) -> list[Json]:
    return [each for each in rendered(*settings) if each["kind"] == kind]


def alerts(*settings: str) -> list[Json]:
    groups = of_kind("PrometheusRule", *settings)[0]["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> Json:
    return json.loads(DASHBOARD.read_text())


def dashboard_queries() -> list[str]:
    targets = (target for panel in dashboard()["panels"] for target in panel.get("targets", []))
    return [target["expr"] for target in targets]


def names_in(queries: list[str]) -> set[str]:
    """The metrics that they read, without what Prometheus adds to a histogram's name."""
    return {SERIES_OF_A_HISTOGRAM.sub("", name) for query in queries for name in NAME.findall(query)}


def names_told(text: str) -> set[str]:
    """The metrics that a program tells of at /metrics."""
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
