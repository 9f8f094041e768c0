"""The surfaces that are imported when they are first asked for: each can be reached, none is there before."""

import subprocess
import sys
from typing import Any, cast

import pytest
from sandpod_runtime import families
from sandpod_runtime.assembly import Parts, router
from sandpod_runtime.options import Options
from sandpod_runtime.routing import Router, route_of
from sandpod_runtime.wire import Request

# Packages that nothing but families needs.
LATER = ("archive", "backup", "files", "git", "ports", "search", "system", "terminal", "watch")


class Asked:
    """As much of a request as routing looks at."""

    def __init__(self, method: str, raw_path: str) -> None:
        self.method = method
        self.raw_path = raw_path
        self.segments: dict[str, str] = {}
        self.template = ""


@pytest.fixture
async def parts() -> Parts:
    return Parts(Options(insecure=True), image={}, open_files=None)


async def test_every_endpoint_is_found_by_the_first_request(parts: Parts) -> None:
    everything = router(parts).everything()
    assert len(everything) > 80
    for family in families.of(parts):
        for route in family.routes:
            fresh = Router({}, families.of(parts))
            asked: Any = Asked(*route)
            fresh.find(cast("Request", asked), route_of(asked))
            assert asked.template == route[1]


async def test_no_route_is_in_two_places(parts: Parts) -> None:
    routes = [route for family in families.of(parts) for route in family.routes]
    assert len({*routes}) == len(routes)
    below = tuple(f"{path}/" for family in families.of(parts) for path in family.paths)
    others = router(parts).everything().keys() - routes
    assert [route for route in others if f"{route[1]}/".startswith(below)] == []


async def test_what_stops_at_the_end_is_what_was_made(parts: Parts) -> None:
    made = router(parts)
    assert {*parts.stop} == {"setup", "declared", "sessions"}
    made.everything()
    assert {*parts.stop} == {"setup", "declared", "sessions", "terminals", "uploads", "watches"}


def test_a_start_imports_none_of_them() -> None:
    code = "import sys; import sandpod_runtime.server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    packages = {name.split(".")[1] for name in loaded.split() if name.startswith("sandpod_runtime.")}
    assert packages & {*LATER} == set()
