"""Previews as people see them: in a real browser, through an ingress controller."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support import browser as chromium
from tests.support.browser import Page
from tests.support.cluster import Json, sandpod
from tests.support.ingress import Ingress
from tests.support.preview_boxes import opened, routed
from tests.support.sandboxes import Sandbox, Sandboxes

pytestmark = pytest.mark.skipif(bool(chromium.why_not()), reason=chromium.why_not())

PORT = 8000
SERVE = (
    "mkdir -p /tmp/web; echo 'hello from the sandbox' > /tmp/web/index.html; exec python3 -m http.server 8000"
)
WEB: Json = {"name": "web", "command": f"{SERVE} --directory /tmp/web", "port": PORT}


@pytest_asyncio.fixture
async def page(ingress: Ingress) -> AsyncIterator[Page]:
    async with chromium.browser(ingress) as page:
        yield page


def serving(sandbox: Sandboxes, *, access: str = "Token") -> Sandbox:
    return sandbox(ports=[{"port": PORT, "access": access}], processes=[WEB]).wait()


async def test_a_browser_shows_what_a_program_serves(
    sandbox: Sandboxes, ingress: Ingress, page: Page
) -> None:
    preview = opened(ingress, serving(sandbox))
    await page.open(preview.url)
    await page.shows("hello from the sandbox")
    assert await page.evaluate("location.href") == preview.url


async def test_a_browser_wakes_a_sandbox_and_shows_it_without_being_asked_again(
    sandbox: Sandboxes, ingress: Ingress, page: Page
) -> None:
    box = serving(sandbox)
    preview = opened(ingress, box)
    box.apply(ports=[{"port": PORT}], processes=[WEB], sleepAfter="1s").falls_asleep()
    await page.open(preview.url)
    await page.shows("hello from the sandbox")
    assert box.status()["wakes"] == 1


async def test_a_browser_is_told_when_nothing_listens_and_shows_it_once_it_does(
    sandbox: Sandboxes, ingress: Ingress, page: Page
) -> None:
    box = sandbox(ports=[{"port": PORT}]).wait()
    await page.open(routed(ingress, box).url)
    await page.shows("Nothing is listening yet")
    box.exec("sh", "-c", f"({SERVE} --directory /tmp/web) >/dev/null 2>&1 &")
    await page.shows("hello from the sandbox")


async def test_a_browser_opens_a_private_port_by_a_login_link(
    sandbox: Sandboxes, ingress: Ingress, page: Page
) -> None:
    box = serving(sandbox, access="Private")
    url = routed(ingress, box).url
    await page.open(url)
    await page.shows("This address is private")
    link = sandpod("open", "-n", box.namespace, box.name, "--print").stdout.strip()
    await page.open(link)
    await page.shows("hello from the sandbox")
    # The cookie is the browser's from now on, and the address bar has nothing in it that opens more.
    await page.open(url)
    await page.shows("hello from the sandbox")
    assert await page.evaluate("location.href") == url
    assert await page.evaluate("document.cookie") == ""
    # Whoever has read the link finds it used.
    async with chromium.browser(ingress) as other:
        await other.open(link)
        assert "hello" not in await other.shows("This login link is used up")
