"""Limits that stand in several places and only work together."""

import re
from pathlib import Path

from sandpod_gateway.settings import Settings

ROOT = Path(__file__).parents[3]


def test_whoever_is_one_too_many_reaches_the_process_and_is_told_so() -> None:
    """HAProxy lets through more than may be under way or wait, and less than what would be hung up on."""
    script = (ROOT / "gateway/haproxy/run").read_text(encoding="utf-8")
    found = re.search(r"SANDPOD_PYTHON_CONNECTIONS:-(\d+)", script)
    assert found is not None
    settings = Settings()

    chart = (ROOT / "charts/sandpod/templates/gateway/_haproxy.tpl").read_text(encoding="utf-8")
    besides = re.search(r"add \.Values\.gateway\.limits\.maxRequests (\d+)", chart)
    assert besides is not None

    for most in (int(found[1]), settings.max_requests + int(besides[1])):
        assert settings.max_requests + settings.max_waiting < most < settings.most_from_haproxy
