"""Logins at private previews: the links, that each works once, and what ends what they give."""

import asyncio

import pytest
from sandpod_crds import keys
from sandpod_crds.names import ANNOTATION_SPENT_LOGINS
from sandpod_gateway.preview_headers import COOKIE
from sandpod_gateway.spent import Spent

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import JANE, KEY, PREFIX, Harness, until
from tests.support.gateway_previews import V1, cookie_of, echo, exposed, follow, login_link
from tests.support.gateway_visitors import JANES

BEARER = {"Authorization": f"Bearer {JANES}"}


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


async def test_the_origin_is_the_one_that_the_browser_sees(built: Harness) -> None:
    await built.start(site={"domain": "sandpod.localhost", "scheme": "https", "port": 8443})
    host = await exposed(built, access="Private")
    await built.raw_program()
    link = await login_link(built)
    assert (link.scheme, link.port) == ("https", 8443)
    cookie = {"Cookie": await cookie_of(built)}

    for written, origin, status in (
        (f"{host}:8443", f"https://{host}:8443", 200),
        (f"{host}:443", f"https://{host}", 200),
        (host, f"https://{host}", 200),
        (f"{host}:8443", f"https://{host}", 403),
        (f"{host}:8443", f"http://{host}:8443", 403),
    ):
        answer = await built.preview("POST", host=written, headers={**cookie, "Origin": origin})
        assert answer.status == status, (written, origin)


async def test_a_sandbox_that_was_made_anew_knows_no_earlier_login(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    link, cookie = await login_link(gateway), {"Cookie": await cookie_of(gateway)}
    await gateway.api.delete("hello")
    await until(lambda: gateway.gateway.table.get(("default", "hello")) is None)

    anew = sandbox("hello", ports=({"port": 8080, "access": "Private"},))
    anew["metadata"]["uid"] = "another"
    await gateway.api.put(anew)
    await until(lambda: gateway.gateway.table.get(("default", "hello")) is not None)

    assert (await gateway.preview("GET", host=host, headers=cookie)).status == 404
    token = keys.preview_token(key=KEY, sandbox_uid="another", port=8080, version=1)
    host = f"8080-hello-{token}.sandpod.localhost"
    assert (await gateway.preview("GET", host=host, headers=cookie)).status == 401
    assert (await follow(gateway, link, host=host)).status == 401


async def test_a_caller_in_too_many_groups_is_told_what_to_do_instead(gateway: Harness) -> None:
    await exposed(gateway, access="Private")
    gateway.api.visitors.users[JANES]["groups"] = [f"a-group-{n}" for n in range(500)]
    answer = await gateway.v1("POST", f"{V1}/hello/ports/8080/login")
    assert (answer.status, "bearer token" in answer.json["message"]) == (422, True)
