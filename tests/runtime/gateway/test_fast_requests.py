"""What HAProxy makes of requests and answers on the fast path. The pod and the Python process both answer
with their names.
"""

import asyncio
import re
import time

import pytest

from tests.support.haproxy import HOST, World, until, world

SOON = 10.0


async def test_a_host_is_read_without_its_port_and_in_any_case(fast: World) -> None:
    await fast.open()

    assert (await fast.haproxy.get(host=f"{HOST.upper()}:8080")).endswith(b"pod")


@pytest.mark.parametrize(
    "form",
    [
        "{host}:abc",
        "{host}:",
        "{host}:123456",
        "user@{host}",
        "{host}/x",
        "{host}, {host}",
        "evil.example:80/x, {host}",
        "evil.example, {host}",
        "{host}\\x",
        "[{host}]",
        "",
    ],
)
async def test_a_host_that_can_be_read_in_two_ways_is_refused(fast: World, form: str) -> None:
    await fast.open()

    answer = await fast.haproxy.get(host=form.format(host=HOST))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert not fast.pod.heads + fast.python.heads


@pytest.mark.parametrize(
    "headers",
    [
        "Cookie: a=1; __host-SANDPOD=login\r\n",
        "Connection: X-Private\r\nX-Private: 1\r\n",
        "Upgrade: h2c\r\n",
    ],
    ids=["our cookie", "named by Connection", "another upgrade"],
)
async def test_what_is_unusual_is_left_to_the_python_process(fast: World, headers: str) -> None:
    await fast.open()

    assert (await fast.haproxy.get(headers=headers)).endswith(b"python")
    assert not fast.pod.heads


@pytest.mark.parametrize("target", ["http://{host}/", "*"])
async def test_a_target_that_is_no_path_is_left_to_the_python_process(fast: World, target: str) -> None:
    await fast.open()

    head = f"OPTIONS {target.format(host=HOST)} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"

    assert (await fast.haproxy.ask(head.encode())).endswith(b"python")


async def test_a_client_cannot_say_who_it_is(fast: World) -> None:
    await fast.open()

    await fast.haproxy.get(
        headers="X-Forwarded-For: 6.6.6.6\r\nx_forwarded_proto: gopher\r\nForwarded: for=6.6.6.6\r\n"
        "X-Real-IP: 6.6.6.6\r\nX-Sandpod-Credential: x\r\nX_Sandpod_Credential: x\r\nTE: trailers\r\n"
    )

    assert sorted(fast.pod.heads[0].split(b"\r\n")[1:]) == sorted(
        [
            f"host: {HOST}".encode(),
            b"x-forwarded-for: 127.0.0.1",
            f"x-forwarded-host: {HOST}".encode(),
            b"x-forwarded-proto: http",
            b"traceparent: " + traced(fast.pod.heads[0]),
            b"",
            b"",
        ]
    )


def traced(head: bytes) -> bytes:
    found = re.findall(rb"\r\ntraceparent: (.*)\r\n", head)
    assert len(found) == 1, head
    return found[0]


@pytest.mark.parametrize("way", ["by Python", "straight"])
async def test_a_trusted_proxy_says_who_the_client_is(way: str) -> None:
    async with world(SANDPOD_TRUSTED_PROXIES="10.0.0.0/8 127.0.0.0/8") as fast:
        server = fast.python
        if way == "straight":
            await fast.open()
            server = fast.pod
        for chain, source in (
            ("6.6.6.6, 192.0.2.7", b"192.0.2.7"),
            ("6.6.6.6, 192.0.2.7, 10.0.0.1, 10.0.0.2", b"192.0.2.7"),
            ("2001:db8::7", b"2001:db8::7"),
            ("::ffff:192.0.2.7", b"192.0.2.7"),
            ("nonsense", b"127.0.0.1"),
            ("6.6.6.6, nonsense", b"127.0.0.1"),
            ("6.6.6.6, nonsense, 10.0.0.1", b"10.0.0.1"),
        ):
            headers = f"X-Forwarded-For: {chain}\r\nX-Forwarded-Proto: gopher, HTTPS\r\n"
            await fast.haproxy.get(headers=headers)

            assert b"\r\nx-forwarded-for: " + source + b"\r\n" in server.heads[-1]
            assert b"\r\nx-forwarded-proto: https\r\n" in server.heads[-1]


async def test_secrets_and_cookies_for_others_do_not_reach_the_browser(fast: World) -> None:
    await fast.open()

    lines = (await fast.haproxy.get("/headers")).lower().split(b"\r\n")

    assert b"set-cookie: mine=1" in lines
    assert not [line for line in lines if b"domain=" in line or b"sandpod" in line or b"keep-alive" in line]


async def test_an_answer_with_a_nul_in_its_head_goes_no_further(fast: World) -> None:
    await fast.open()

    answer = await fast.haproxy.get("/nul")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"\0" not in answer


async def test_an_upgrade_that_connection_does_not_name_is_for_python_to_judge(fast: World) -> None:
    await fast.open()

    await fast.haproxy.get(headers="Upgrade: websocket\r\n")

    assert (len(fast.pod.heads), len(fast.python.heads)) == (0, 1)


async def test_one_connection_may_ask_for_hosts_of_both_ways(fast: World) -> None:
    await fast.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.port)

    for host, name in ((HOST, b"pod"), ("elsewhere.test", b"python"), (HOST, b"pod")):
        writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(name)) == name
    writer.close()

    traffic = (await fast.haproxy.admin.traffic())[HOST]
    assert (traffic.requests - traffic.answers, traffic.streams) == (0, 0)


async def test_a_site_that_is_linked_to_does_not_learn_the_token(fast: World) -> None:
    await fast.open()

    assert b"\r\nreferrer-policy: no-referrer\r\n" in await fast.haproxy.get()
    assert b"\r\nreferrer-policy: origin\r\n" in await fast.haproxy.get("/policy")


async def connected(fast: World, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.port)
    writer.write(f"{head}Host: {HOST}\r\nConnection: close\r\n\r\n".encode())
    return reader, writer


async def test_pieces_of_an_answer_arrive_as_they_are_sent_and_its_trailers_too(fast: World) -> None:
    await fast.open()
    reader, writer = await connected(fast, "GET /drip HTTP/1.1\r\n")

    async with asyncio.timeout(SOON):
        await reader.readuntil(b"first\r\n")
        fast.pod.release.set()
        assert (await reader.read()).lower() == b"4\r\nlast\r\n0\r\nx-trailer: end\r\n\r\n"
    writer.close()


async def test_a_body_in_chunks_is_left_to_the_python_process(fast: World) -> None:
    """Behind its end there may be headers, which nothing here could take away."""
    await fast.open()
    reader, writer = await connected(fast, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n")

    await until(lambda: len(fast.python.heads) == 1)
    writer.write(b"3\r\nabc\r\n")
    writer.write(b"0\r\n\r\n")

    async with asyncio.timeout(SOON):
        assert b"abc\r\n0\r\n" in await reader.read()
    assert not fast.pod.heads
    writer.close()


async def test_a_client_that_asks_first_sends_its_body_when_the_program_says_so(fast: World) -> None:
    await fast.open()
    head = "POST /continue HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
    reader, writer = await connected(fast, head)

    async with asyncio.timeout(SOON):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"body")
        assert (await reader.read()).endswith(b"body")
    writer.close()


async def test_an_answer_to_head_has_a_length_and_no_body(fast: World) -> None:
    await fast.open()
    reader, writer = await connected(fast, "HEAD / HTTP/1.1\r\n")

    async with asyncio.timeout(SOON):
        answer = await reader.read()
    assert b"content-length: 3\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")
    writer.close()


async def test_a_request_that_the_pod_does_not_accept_goes_to_the_python_process_at_once(fast: World) -> None:
    await fast.open()
    await fast.haproxy.admin.put({HOST: f"127.0.0.1|1|{(time.time() + 60) * 1000:.0f}|default|hello"})

    head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"

    assert (await fast.haproxy.ask(head.encode())).endswith(b"python")
    assert fast.python.heads[-1].startswith(b"POST / ")


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_whose_fate_is_unknown_is_never_sent_again(fast: World, method: str) -> None:
    await fast.open()

    head = f"{method} /break HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    assert (await fast.haproxy.ask(head.encode())).startswith(b"HTTP/1.1 502")
    assert len(fast.pod.heads) == 1
    assert not fast.python.heads


async def test_ambiguous_requests_are_refused_or_made_plain(fast: World) -> None:
    await fast.open()
    host = f"Host: {HOST}\r\n"

    for head in (
        f"GET / HTTP/1.1\r\n{host}Host: other\r\n\r\n",
        f"GET http://other/ HTTP/1.1\r\n{host}\r\n",
        f"POST / HTTP/1.1\r\n{host}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        f"POST / HTTP/1.1\r\n{host}Content-Length: +3\r\n\r\nabc",
        f"POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        f"GET /\0 HTTP/1.1\r\n{host}\r\n",
        f"GET / HTTP/1.1\r\n{host}A\0: b\r\n\r\n",
        f"GET / HTTP/1.1\r\n{host}A : b\r\n\r\n",
    ):
        answer = await fast.haproxy.ask(head.encode())
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 422")), (head, answer)
    assert not fast.pod.heads

    both = f"POST / HTTP/1.1\r\n{host}Content-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    hidden = f"GET /hidden HTTP/1.1\r\n{host}\r\n"
    await fast.haproxy.ask((both + hidden).encode())

    assert b"content-length" not in fast.python.heads[0]
    assert not [head for head in fast.pod.heads + fast.python.heads if b"/hidden" in head]
