"""Which hosts open which ports, and what it costs to find out."""

import dataclasses

import pytest
from sandpod_crds import keys
from sandpod_crds.previews import PreviewAddress, Site
from sandpod_gateway.errors import NotFound
from sandpod_gateway.routes import ExposedPort, Route, RouteTable
from sandpod_gateway.targets import Targets

SECRET = b"k" * 32
PORT = ExposedPort(port=8080, private=False, token_version=1)
KEY = ("a", "my.app")
ROUTE = Route(uid="1", ports=(PORT,))


def host(*, uid: str = "1", port: int = 8080, version: int = 1, name: str = "my.app") -> str:
    token = keys.preview_token(key=SECRET, sandbox_uid=uid, port=port, version=version)
    return Site().host(PreviewAddress.of(port=port, sandbox=name, token=token))


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


@pytest.fixture
def targets(table: RouteTable) -> Targets:
    return Targets(site=Site(), key=SECRET, table=table)


def opens(targets: Targets, host: str) -> bool:
    try:
        targets.find(host)
    except NotFound:
        return False
    return True


def test_sandboxes_that_share_a_name_are_told_apart_by_their_tokens(
    table: RouteTable, targets: Targets
) -> None:
    table.put(KEY, ROUTE)
    table.put(("b", "my-app"), Route(uid="2", ports=(PORT,)))

    assert [targets.find(host(uid=uid)).key for uid in ("1", "2")] == [KEY, ("b", "my-app")]


def test_what_the_table_held_before_is_found_too(table: RouteTable) -> None:
    table.put(KEY, ROUTE)

    assert Targets(site=Site(), key=SECRET, table=table).find(host()).route is ROUTE


@pytest.mark.parametrize(
    "change",
    [
        {"ports": ()},
        {"ports": (dataclasses.replace(PORT, token_version=2),)},
        {"ports": (dataclasses.replace(PORT, port=9090),)},
        {"uid": "2"},
        {"deleting": True},
    ],
    ids=["unexposed", "rotated", "another port", "made anew", "deleted"],
)
def test_what_is_taken_back_opens_nothing(
    table: RouteTable, targets: Targets, change: dict[str, object]
) -> None:
    table.put(KEY, ROUTE)
    found = targets.find(host())

    table.put(KEY, dataclasses.replace(ROUTE, **change))

    assert not opens(targets, host())
    assert not targets.still_opens(host(), found)


def test_nothing_is_left_of_a_sandbox_that_has_gone(table: RouteTable, targets: Targets) -> None:
    table.put(KEY, ROUTE)
    table.put(("b", "other"), ROUTE)
    table.remove(KEY)
    table.replace({})

    assert vars(targets)["_open"] == {}


def test_a_port_that_is_made_private_keeps_its_address(table: RouteTable, targets: Targets) -> None:
    table.put(KEY, ROUTE)
    found = targets.find(host())
    table.put(KEY, dataclasses.replace(ROUTE, ports=(dataclasses.replace(PORT, private=True),)))

    assert targets.find(host()).port.private
    assert not targets.still_opens(host(), found)


def test_no_request_costs_a_derivation_however_many_sandboxes_share_the_name(
    table: RouteTable, targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, derive, derived = host(name="same"), keys.preview_token, 0

    def counted(*, key: bytes, sandbox_uid: str, port: int, version: int) -> str:
        nonlocal derived
        derived += 1
        return derive(key=key, sandbox_uid=sandbox_uid, port=port, version=version)

    monkeypatch.setattr(keys, "preview_token", counted)
    routes = {(f"team-{number}", "same"): Route(uid=f"{number}", ports=(PORT,)) for number in range(100)}
    table.replace(routes)
    assert derived == 100

    # Nor does what has nothing to do with ports.
    table.replace({key: dataclasses.replace(route, ready=True) for key, route in routes.items()})
    assert opens(targets, known)
    assert not opens(targets, f"8080-same-{'a' * 20}.sandpod.localhost")
    assert derived == 100
