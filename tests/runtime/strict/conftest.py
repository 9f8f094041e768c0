"""Runtimes that isolate commands, each as root of a user namespace of its own, as in a pod."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from sandpod_operator.resources.confine import strict_context

from tests.support import user_namespace
from tests.support.runtime import Runtime

Json = dict[str, Any]
USER = 1000
STATE = ".sandpod"


@pytest.fixture(scope="session", autouse=True)
def a_user_namespace() -> None:
    if reason := user_namespace.refusal():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def strict() -> Iterator[Callable[..., Runtime]]:
    """Starts one, whose state lies hidden in its workspace."""
    made: list[Runtime] = []
    with tempfile.TemporaryDirectory(prefix="sandpod-strict-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)

        def build(*, user: int = USER, extra: Sequence[str] = (), **options: Any) -> Runtime:
            workspace = options.setdefault("workspace", Path(place, f"workspace-{len(made)}"))
            arguments = ["--strict", str(user), "--state", str(workspace / STATE), *extra]
            # With what the operator asks for, and not all that root of a user namespace could have.
            given = ",".join(f"+{name.lower()}" for name in strict_context(user)["capabilities"]["add"])
            prefix = [*user_namespace.prefix(), "setpriv", "--bounding-set", f"-all,{given}"]
            made.append(Runtime(prefix=prefix, arguments=arguments, **options))
            return made[-1]

        yield build
        for each in made:
            each.dispose()


@pytest.fixture(scope="module", params=[USER, 0], ids=["user", "root"])
def world(request: pytest.FixtureRequest, strict: Callable[..., Runtime]) -> Runtime:
    return strict(user=request.param)


@pytest.fixture
def runtime(world: Runtime) -> Iterator[Runtime]:
    failures = len(world.failures())
    yield world
    assert world.failures()[failures:] == []


@pytest_asyncio.fixture
async def http(runtime: Runtime) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url) as session:
        yield session


@pytest.fixture
def post(http: aiohttp.ClientSession) -> Callable[..., Any]:
    async def call(where: str, /, *, status: int = 200, **fields: Any) -> Json:
        async with http.post(where, json=fields) as response:
            body: Json = await response.json()
            assert response.status == status, body
            return body

    return call


@pytest.fixture
def run(post: Callable[..., Any]) -> Callable[..., Any]:
    """What a command writes, and its exit code."""

    async def call(command: str, **fields: Any) -> tuple[str, int]:
        body = await post("/api/execute", command=f"{{ {command}\n}} 2>&1", **fields)
        return body["stdout"], body["exitCode"]

    return call
