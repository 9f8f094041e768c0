"""What tests of previews have in common: a sandbox with an open port, and a program that says what it got."""

from typing import Any

from aiohttp import web
from sandpod_gateway.preview_headers import COOKIE
from yarl import URL

from .gateway_harness import Answer, Harness

V1 = "/v1/namespaces/default/sandboxes"


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(
        text=f"{request.method} {request.raw_path}", headers={"X-Body": (await request.read()).decode()}
    )


async def exposed(gateway: Harness, *, access: str = "Token", **values: Any) -> str:
    """A sandbox that exposes port 8080; returns the host of its preview."""
    await gateway.raw_runtime()
    await gateway.expose("hello", {"port": 8080, "access": access}, **values)
    return gateway.preview_host("hello")


def with_another_token(host: str) -> str:
    label, _, domain = host.partition(".")
    return f"{label[:-20]}{'a' * 20}.{domain}"


async def login_link(gateway: Harness, *, name: str = "hello", port: int = 8080) -> URL:
    answer = await gateway.v1("POST", f"{V1}/{name}/ports/{port}/login")
    assert answer.status == 201, answer.body
    return URL(answer.json["url"], encoded=True)


async def follow(gateway: Harness, link: URL, *, host: str = "", more: str = "") -> Answer:
    return await gateway.preview("GET", link.raw_path_qs + more, host=host or str(link.host))


async def cookie_of(gateway: Harness, **which: Any) -> str:
    """That of somebody who has just logged in, as a browser sends it."""
    answer = await follow(gateway, await login_link(gateway, **which))
    assert answer.status == 303, answer.body
    value = answer.headers["Set-Cookie"].partition(";")[0]
    assert value.startswith(f"{COOKIE}=")
    return value
