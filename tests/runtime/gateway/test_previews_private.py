"""Previews with `access: Private`: who is let in, for how long, and what the program learns of it."""

import asyncio

import pytest
from sandpod_crds.names import ANNOTATION_SPENT_LOGINS
from sandpod_gateway.preview_headers import COOKIE
from sandpod_gateway.spent import Spent

from tests.support.gateway_harness import JANE, PREFIX, Harness, until
from tests.support.gateway_previews import V1, cookie_of, echo, exposed, follow, login_link
from tests.support.gateway_visitors import JANES

BEARER = {"Authorization": f"Bearer {JANES}"}


async def test_the_address_alone_opens_nothing_and_wakes_nothing(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private", phase="Asleep", ready=False, pod_ip="")

    program = await gateway.preview("GET", host=host)
    person = await gateway.preview("GET", host=host, headers={"Accept": "text/html"})

    assert (program.status, program.json["code"]) == (401, "LOGIN_NEEDED")
    assert program.headers["WWW-Authenticate"] == "Bearer"
    assert (person.status, b"sandpod open" in person.body) == (401, True)
    assert gateway.api.wakes == []


async def test_a_bearer_token_that_may_see_the_ports_opens_it_and_stays_at_the_gateway(
    gateway: Harness,
) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()

    answer = await gateway.preview("POST", host=host, headers=BEARER, data=b"x")

    assert (answer.status, answer.body) == (200, b"ok")
    assert JANES.encode() not in bytes(program.received)
    assert gateway.api.reviews[-1]["user"] == "jane"
    assert gateway.api.reviews[-1]["resourceAttributes"] == {
        "group": "sandpod.dev",
        "version": "v1alpha1",
        "resource": "sandboxes",
        "subresource": "ports",
        "verb": "get",
        "namespace": "default",
        "name": "hello",
    }
    assert gateway.audit_lines()[-1]["user"] == "jane"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer of-nobody"}, 401),
        ({"Authorization": "Basic amFuZTpqYW5l"}, 401),
        ({"Cookie": f"{COOKIE}=forged.forged"}, 401),
        ({"Cookie": f"{COOKIE}=.; {COOKIE}="}, 401),
    ],
)
async def test_whoever_proves_nothing_is_not_let_in(
    gateway: Harness, headers: dict[str, str], status: int
) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    assert (await gateway.preview("GET", host=host, headers=headers)).status == status
    assert program.connections == 0


async def test_who_may_not_see_the_ports_gets_neither_in_nor_a_link(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    gateway.api.allow = lambda spec: False

    assert (await gateway.preview("GET", host=host, headers=BEARER)).status == 403
    refused = await gateway.v1("POST", f"{V1}/hello/ports/8080/login")

    assert (refused.status, program.connections) == (403, 0)
    assert 'cannot get resource "sandboxes/ports"' in refused.json["message"]


async def test_a_link_logs_a_browser_in_and_its_cookie_opens_the_program(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    link = await login_link(gateway)
    assert (link.scheme, link.host, link.path) == ("http", host, "/.sandpod/login")

    answer = await follow(gateway, link, more="&next=/app%3Fa=1%26b")

    assert (answer.status, answer.headers["Location"]) == (303, "/app?a=1&b")
    assert (answer.headers["Cache-Control"], answer.headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    value, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert attributes == ["Max-Age=28800", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"]
    opened = await gateway.preview("GET", "/app", host=host, headers={"Cookie": f"mine=1; {value}"})
    assert (opened.status, opened.body) == (200, b"ok")
    assert b"Cookie: mine=1" in program.head()
    assert gateway.audit_lines()[-1]["user"] == "jane"


async def test_the_link_is_to_be_had_through_the_api_server_too(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    path = f"{PREFIX}/namespaces/default/sandboxes/hello/ports/8080/login"

    answer = await gateway.request("POST", path, headers=JANE)

    assert (answer.status, answer.json["kind"]) == (201, "SandboxPortLogin")
    assert answer.json["expiresAt"].endswith("Z")
    assert (await gateway.request("GET", path, headers=JANE)).status == 405


async def test_a_link_is_for_private_ports_that_are_exposed(gateway: Harness) -> None:
    await exposed(gateway)
    assert (await gateway.v1("POST", f"{V1}/hello/ports/8080/login")).status == 409
    assert (await gateway.v1("POST", f"{V1}/hello/ports/9999/login")).status == 404


async def test_a_link_opens_once(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    link = await login_link(gateway)

    looked = await gateway.preview("HEAD", link.raw_path_qs, host=str(link.host))
    first, second = await follow(gateway, link), await follow(gateway, link)

    assert (looked.status, first.status) == (405, 303)
    assert (second.status, second.json["code"]) == (401, "LOGIN_LINK_USED")
    assert "Set-Cookie" not in second.headers


async def test_a_link_opens_once_over_all_replicas(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    kubes = [gateway.api.kube() for _ in range(4)]
    replicas = [Spent(kube=kube, longest=60, clock=lambda: 1000.0) for kube in kubes]

    won = await asyncio.gather(
        *(
            each.spend(("default", "hello"), sandbox_uid="uid-of-hello", nonce="n", expires=1060)
            for each in replicas
        )
    )

    assert sorted(won) == [False, False, False, True]
    annotations = gateway.api.objects["default", "hello"]["metadata"]["annotations"]
    assert annotations[ANNOTATION_SPENT_LOGINS] == "n@1060"
    for kube in kubes:
        await kube.close()


async def test_a_link_whose_use_the_api_server_does_not_confirm_gives_no_cookie(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    link = await login_link(gateway)
    gateway.api.down = True
    answer = await follow(gateway, link)
    assert (answer.status, "Set-Cookie" in answer.headers) == (503, False)


async def test_a_link_and_a_cookie_are_for_one_port_of_one_sandbox(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    private = {"port": 8080, "access": "Private"}
    await gateway.expose("hello", private, {"port": 8081, "access": "Private"})
    await gateway.expose("other", private)
    link, cookie = await login_link(gateway), await cookie_of(gateway)

    for host in (gateway.preview_host("hello", port=8081), gateway.preview_host("other")):
        assert (await follow(gateway, link, host=host)).status == 401
        assert (await gateway.preview("GET", host=host, headers={"Cookie": cookie})).status == 401
    assert (await follow(gateway, link)).status == 303


async def test_a_code_is_no_cookie_and_a_cookie_no_code(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    link, cookie = await login_link(gateway), await cookie_of(gateway)

    code = link.query["code"]
    as_cookie = await gateway.preview("GET", host=host, headers={"Cookie": f"{COOKIE}={code}"})
    value = cookie.partition("=")[2]
    as_code = await gateway.preview("GET", f"/.sandpod/login?code={value}", host=host)

    assert (as_cookie.status, as_code.status) == (401, 401)


async def test_a_rotation_ends_logins(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    await gateway.program(echo)
    cookie = await cookie_of(gateway)

    await gateway.expose("hello", {"port": 8080, "access": "Private", "tokenVersion": 2})

    host = gateway.preview_host("hello", version=2)
    assert (await gateway.preview("GET", host=host, headers={"Cookie": cookie})).status == 401


async def test_a_right_that_is_taken_away_ends_access_however_good_the_cookie(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0.05)
    host = await exposed(built, access="Private")
    await built.program(echo)
    cookie = {"Cookie": await cookie_of(built)}
    assert (await built.preview("GET", host=host, headers=cookie)).status == 200

    built.api.allow = lambda spec: False

    async with asyncio.timeout(5):
        while (await built.preview("GET", host=host, headers=cookie)).status != 403:
            pass


async def test_a_right_that_is_taken_away_while_a_request_waits_counts(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0, wake_wait_seconds=5)
    host = await exposed(built, access="Private", phase="Asleep", ready=False, pod_ip="")
    program = await built.raw_program()
    waiting = asyncio.create_task(built.preview("GET", host=host, headers=BEARER))
    await until(lambda: bool(built.api.wakes))

    built.api.allow = lambda spec: False
    await built.expose("hello", {"port": 8080, "access": "Private"})

    assert ((await waiting).status, program.connections) == (403, 0)


async def test_a_port_that_is_made_private_while_a_request_waits_is_closed_to_it(built: Harness) -> None:
    await built.start(wake_wait_seconds=5)
    host = await exposed(built, phase="Asleep", ready=False, pod_ip="")
    program = await built.raw_program()
    waiting = asyncio.create_task(built.preview("GET", host=host))
    await until(lambda: bool(built.api.wakes))

    await built.expose("hello", {"port": 8080, "access": "Private"})

    assert ((await waiting).status, program.connections) == (401, 0)


async def test_with_a_login_authorization_is_the_programs_own(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    headers = {"Cookie": await cookie_of(gateway), "Authorization": "token of-jupyter"}
    assert (await gateway.preview("GET", host=host, headers=headers)).status == 200
    assert b"Authorization: token of-jupyter" in program.head()


async def test_a_logout_takes_the_cookie_away(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    answer = await gateway.preview("GET", "/.sandpod/logout", host=host)
    assert answer.status == 200
    assert answer.headers["Set-Cookie"].startswith(f"{COOKIE}=; Max-Age=0; Path=/; Secure")


async def test_nothing_below_our_own_path_reaches_the_program_of_a_private_port(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    for path in ("/.sandpod", "/.sandpod/", "/.sandpod//login?code=x", "/.sandpod/login/?code=x"):
        assert (await gateway.preview("GET", path, host=host, headers=BEARER)).status == 404
    assert program.connections == 0


async def test_codes_cookies_and_tokens_are_in_no_log(
    gateway: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    host = await exposed(gateway, access="Private")
    await gateway.program(echo)
    link = await login_link(gateway)
    answer = await follow(gateway, link)
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    await gateway.preview("GET", "/?q=of-the-query", host=host, headers={"Cookie": cookie})
    await gateway.preview("GET", host=host, headers=BEARER)
    await follow(gateway, link)
    await gateway.raw_preview(f"GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    logged = gateway.log.getvalue() + caplog.text
    token = host.partition(".")[0][-20:]
    secrets = (link.query["code"], cookie.partition("=")[2], JANES, token, "of-the-query")
    assert [secret for secret in secrets if secret in logged] == []
    assert '"path":"/.sandpod/login"' in logged
