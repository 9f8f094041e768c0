"""What HAProxy says, and what a host's counters mean for its sandbox."""

import dataclasses

import pytest
from sandpod_gateway.fastpath.admin import Traffic, codes_in, sessions_to, traffic_in
from sandpod_gateway.fastpath.entry import LONGEST_SILENCE, SETTLED_SECONDS, Entry
from sandpod_gateway.proxy import Runtime
from sandpod_gateway.routes import ExposedPort, Route

PORT = ExposedPort(port=8000, private=False, token_version=1)
ROUTE = Route(uid="u", phase="Running", ready=True, pod_ip="10.0.0.1", pod_uid="p", ports=(PORT,))

TABLE = """# table: hosts, type: string, size:16384, used:2
0x563c1def5f20: key=8000-a.sandpod.localhost use=0 exp=599321 gpc0=1 conn_cur=0 http_req_cnt=2 bytes_in_cnt=102 bytes_out_cnt=163
0x563c1def5f99: key=8000-b.sandpod.localhost use=1 exp=599321 gpc0=0 conn_cur=1 http_req_cnt=1 bytes_in_cnt=0 bytes_out_cnt=0
"""  # noqa: E501 - as HAProxy writes it

SESSIONS = """0x563c1ddbb980: [18/Nov/2026:21:57:33.007765] id=21 proto=tcpv4 source=127.0.0.1:47046
  frontend=web (id=5 mode=http), listener=? (id=1) addr=127.0.0.1:18080
  backend=pods (id=6 mode=http) addr=10.0.0.9:42110
  server=pod (id=1) addr=10.0.0.1:8000
  task=0x563c1def5710 (state=0x00 nice=0 calls=3 rate=0 exp=0s tmask=0x1 age=?)
0x563c1dd99e10: [18/Nov/2026:21:57:33.210371] id=22 proto=unix_stream source=unix:1
  backend=<NONE> (id=-1 mode=-)
  server=<NONE> (id=-1)
0x563c1dd99e20: [18/Nov/2026:21:57:33.210371] id=23 proto=tcpv4 source=10.0.0.1:8000
  server=pod (id=1) addr=10.0.0.1:80001
0x563c1dd99e30: [18/Nov/2026:21:57:33.210371] id=24 proto=tcpv6 source=::1:8000
  server=pod (id=1) addr=fd00::1:8000
"""


@pytest.fixture
def entry() -> Entry:
    return Entry(
        host="8000-a.sandpod.localhost",
        key=("default", "a"),
        uid="u",
        port=PORT,
        runtime=Runtime(address=("10.0.0.1", 3000), pod_uid="p", credential="c"),
        address=("10.0.0.1", 8000),
        moved=0.0,
    )


def test_counters_are_read_by_host() -> None:
    assert traffic_in(TABLE) == {
        "8000-a.sandpod.localhost": Traffic(requests=2, answers=1, received=102, sent=163),
        "8000-b.sandpod.localhost": Traffic(streams=1, requests=1),
    }


@pytest.mark.parametrize("text", ["", "\n", "Unknown command", "0x1: key="])
def test_an_answer_without_entries_has_none(text: str) -> None:
    assert traffic_in(text) == {}
    assert sessions_to(text, addresses={""}) == []
    assert codes_in(text) == {}


def test_only_sessions_to_exactly_this_address_are_found() -> None:
    assert sessions_to(SESSIONS, addresses={"10.0.0.1:8000"}) == ["0x563c1ddbb980"]
    assert sessions_to(SESSIONS, addresses={"fd00::1:8000"}) == ["0x563c1dd99e30"]


def test_only_the_answers_of_pods_are_counted() -> None:
    text = "# pxname,svname,hrsp_1xx,hrsp_2xx\npods,python,9,9\npods,pod,0,7\n"

    assert codes_in(text) == {"1xx": 0, "2xx": 7}


def test_a_host_that_has_moved_since_is_in_use(entry: Entry) -> None:
    entry.look(Traffic(requests=1, answers=1, sent=5), now=10)

    assert entry.is_used(10, since=9)
    assert not entry.is_used(10, since=10)


def test_a_stream_is_in_use_until_it_has_settled(entry: Entry) -> None:
    streaming = Traffic(streams=1, requests=1, answers=1, sent=5)
    entry.look(streaming, now=10)
    entry.look(streaming, now=10 + SETTLED_SECONDS)

    assert entry.is_used(10 + SETTLED_SECONDS - 0.1, since=10)
    assert not entry.is_used(10 + SETTLED_SECONDS, since=10)


def test_a_request_without_an_answer_is_waited_for_but_not_for_ever(entry: Entry) -> None:
    entry.look(Traffic(streams=1, requests=1), now=10)

    assert entry.is_used(9 + LONGEST_SILENCE, since=10)
    assert not entry.is_used(10 + LONGEST_SILENCE, since=10)


def test_counters_that_haproxy_has_forgotten_have_not_moved_and_are_owed_no_answer(entry: Entry) -> None:
    entry.look(Traffic(requests=3, answers=1), now=10)
    entry.look(Traffic(), now=50)

    assert (entry.moved, entry.abandoned) == (10, 0)


def test_a_request_that_begins_new_counters_is_waited_for(entry: Entry) -> None:
    entry.look(Traffic(requests=3, answers=1), now=10)
    entry.look(Traffic(streams=1, requests=1), now=50)

    assert entry.is_used(49 + LONGEST_SILENCE, since=50)


def test_requests_whose_clients_have_left_are_not_waited_for(entry: Entry) -> None:
    entry.look(Traffic(streams=0, requests=3, answers=1), now=10)
    entry.look(Traffic(streams=1, requests=4, answers=2), now=11)

    assert not entry.is_used(11 + SETTLED_SECONDS, since=11)


@pytest.mark.parametrize(
    "change",
    [
        {"deleting": True},
        {"uid": "another"},
        {"ports": ()},
        {"ports": (dataclasses.replace(PORT, private=True),)},
        {"ports": (dataclasses.replace(PORT, token_version=2),)},
    ],
)
def test_what_is_taken_back_is_not_exposed(entry: Entry, change: dict[str, object]) -> None:
    assert entry.is_exposed(ROUTE)
    assert not entry.is_exposed(dataclasses.replace(ROUTE, **change))


@pytest.mark.parametrize(
    "change", [{"ready": False}, {"pod_uid": "next"}, {"paused": True}, {"phase": "Draining"}]
)
def test_a_pod_that_leaves_is_not_led_to(entry: Entry, change: dict[str, object]) -> None:
    assert entry.leads_to(ROUTE)
    assert not entry.leads_to(dataclasses.replace(ROUTE, **change))


def test_the_deadline_is_written_in_milliseconds(entry: Entry) -> None:
    assert entry.line(1795139021.6654) == "10.0.0.1|8000|1795139021665|default|a"
