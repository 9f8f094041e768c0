"""What the operator sends to a pod's address after the bind, it sends to that pod only; and what binds one
pod of a name binds no other.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web
from sandpod_crds.keys import bind_token, credential, proof, sha256_hex
from sandpod_crds.names import ANNOTATION_BIND_NONCE
from sandpod_operator.metrics import Metrics
from sandpod_operator.observations import Answer, Errand, Key, Outcome
from sandpod_operator.resources.pod import with_bind_nonce
from sandpod_operator.runtime_client import RuntimeClient
from sandpod_operator.whereabouts import whereabouts

from tests.support.asked_runtime import ASK as ANY_ASK
from tests.support.asked_runtime import SECRET
from tests.support.operator_api import Api
from tests.support.operator_objects import INSTALLATION, KEY, NOW, POD_UID, case_of, sandbox

ASK = replace(ANY_ASK, bind_nonce="n1")


class Listening:
    """A runtime of the pod with this UID, bound already, that says yes to whatever it is told."""

    def __init__(self, pod_uid: str) -> None:
        self.credential = credential(key=SECRET, namespace=KEY.namespace, pod_uid=pod_uid)
        self.tokens: list[str] = []
        self.told: list[str] = []
        self.proofs = 0
        self.asked_often = asyncio.Event()
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/api/prove":
            self.proofs += 1
            if self.proofs == 3:
                self.asked_often.set()
            return web.json_response(
                {"proof": proof(credential=self.credential, nonce=request.query["nonce"])}
            )
        if request.path == "/api/bind":
            self.tokens.append(request.headers["X-Sandpod-Bind-Token"])
            return web.json_response({"code": "ALREADY_BOUND"}, status=409)
        self.told.append(request.headers["X-Sandpod-Credential"])
        return web.json_response({"runtimeVersion": "0.1.0", "sandbox": {"uid": ASK.sandbox_uid}})


@pytest.fixture
async def answers() -> "asyncio.Queue[tuple[Key, Answer]]":
    return asyncio.Queue()


@pytest.fixture(params=[POD_UID, "another"])
async def there(request: pytest.FixtureRequest) -> AsyncIterator[Listening]:
    found = Listening(request.param)
    server = web.Server(found.answer)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    found.port = listening.sockets[0].getsockname()[1]
    yield found
    listening.close()
    await server.shutdown(0.1)


@pytest.mark.parametrize("errand", [Errand.BIND, Errand.STAY])
async def test_only_the_pods_own_runtime_gets_the_credential(
    there: Listening, answers: "asyncio.Queue[tuple[Key, Answer]]", errand: Errand
) -> None:
    client = RuntimeClient(
        key=SECRET,
        answered=lambda key, answer: answers.put_nowait((key, answer)),
        metrics=Metrics(),
        now=lambda: NOW,
        is_there=whereabouts(Api(now=lambda: NOW)),
        where=lambda _: f"127.0.0.1:{there.port}",
    )
    mine = credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID)
    client.want(KEY, replace(ASK, errand=errand))
    if there.credential == mine:
        _, answer = await asyncio.wait_for(answers.get(), 10)
        assert (answer.outcome, there.told) == (Outcome.DONE, [mine])
    elif errand is Errand.BIND:
        _, answer = await asyncio.wait_for(answers.get(), 10)
        assert (answer.outcome, there.told) == (Outcome.REFUSED, [])
    else:
        # Until the pod's own address is known.
        await asyncio.wait_for(there.asked_often.wait(), 10)
        assert (answers.empty(), there.told) == (True, [])
    await client.close()


def test_each_pod_of_a_name_has_a_bind_token_of_its_own() -> None:
    made = case_of(sandbox()).wanted_pod
    shown: set[str] = set()
    for nonce in ("n1", "n2"):
        pod = with_bind_nonce(made, nonce, key=INSTALLATION.key)
        token = bind_token(
            key=INSTALLATION.key, namespace=KEY.namespace, pod_name=pod["metadata"]["name"], nonce=nonce
        )
        env = pod["spec"]["containers"][0]["env"]
        assert [e["value"] for e in env if e["name"] == "SANDPOD_BIND_SHA256"] == [sha256_hex(token)]
        assert pod["metadata"]["annotations"][ANNOTATION_BIND_NONCE] == nonce
        shown.add(token)
    assert len(shown) == 2
    # What pods are compared by has no part in it.
    assert ANNOTATION_BIND_NONCE not in made["metadata"]["annotations"]
