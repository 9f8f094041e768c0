"""Tells runtimes what decide wants them to know, again and again until they answer: to be ours, to stay, to
sleep. In the background: a worker of the queue never waits for a pod.
"""

import asyncio
import hmac
import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, cast
from weakref import WeakValueDictionary

import aiohttp
from sandpod_crds.keys import bind_token, credential, proof
from sandpod_crds.names import BIND_TOKEN_HEADER, CREDENTIAL_HEADER

from .metrics import Metrics
from .objects import Json
from .observations import Answer, Errand, Key, Outcome, SetupResult
from .plan import Ask
from .runtime_messages import (
    LONGEST_MESSAGE,
    binding,
    disk_message,
    is_unwritable,
    lifecycle,
    record,
    setup_message,
    walls,
    word,
)
from .whereabouts import IsThere, pod_address

# The runtime needs a moment from the pod's address to its first answer, and every millisecond of it is
# waited for.
FIRST_PAUSE = 0.02
EAGER_FOR = 3.0
LONGEST_PAUSE = 1.0
# A watch may be late: an address that says nothing may be another pod's by now, and is sent no environment
# again without a look.
SURE_FOR = 5.0
# A sandbox that is woken while it is awake has so long, or more if it sleeps later, to be used.
STAY_SECONDS = 10.0
STAY_HOLDER = "wake"
# For a connection in the cluster's own network. A lost packet must not cost the second that TCP would wait.
CONNECT_SECONDS = 0.5
ANSWER_SECONDS = 5.0
# What has said nothing once holds up others no longer than this, each time: it may be there to do that.
SILENT_SECONDS = 1.5
# Requests at a time; a storm of starts takes turns. A namespace has its share of them: what listens in its
# pods may say nothing for as long as it can.
MOST_AT_ONCE = 64
MOST_FOR_A_NAMESPACE = 16
LONGEST_ANSWER = 64 * 1024
GOING_TO_SLEEP = 503

log = logging.getLogger(__name__)


class RuntimeClient:
    """At most one asking for each sandbox, for its present pod."""

    def __init__(
        self,
        *,
        key: bytes,
        answered: Callable[[Key, Answer], None],
        metrics: Metrics,
        now: Callable[[], datetime],
        is_there: IsThere,
        where: Callable[[str], str | None] | None = None,
    ) -> None:
        self._key = key
        self._answered = answered
        self._metrics = metrics
        self._now = now
        self._is_there = is_there
        self._where = where or pod_address
        self._asking: dict[Key, tuple[Ask, asyncio.Task[None]]] = {}
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)
        # Each for as long as somebody in the namespace is asked: names of namespaces come without end.
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        # UIDs of pods that are being asked and have let an attempt run out of time
        self._silent: set[str] = set()
        self._session: aiohttp.ClientSession | None = None

    def __len__(self) -> int:
        return len(self._asking)

    @property
    def namespaces(self) -> int:
        """How many of them have somebody who is being asked."""
        return len(self._shares)

    def want(self, key: Key, ask: Ask | None) -> None:
        """Ask this from now on; None: ask nothing. Whatever else was asked for the sandbox ends."""
        asking = self._asking.get(key)
        if asking is not None:
            if asking[0] == ask:
                return
            asking[1].cancel()
            del self._asking[key]
        if ask is not None:
            task = asyncio.create_task(self._ask(key, ask), name=f"ask {key}")
            self._asking[key] = (ask, task)

    async def close(self) -> None:
        tasks = [task for _, task in self._asking.values()]
        self._asking.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _ask(self, key: Key, ask: Ask) -> None:
        clock = asyncio.get_running_loop().time
        begun, pause = clock(), FIRST_PAUSE
        seen_at, sure = begun, True
        try:
            while (answer := await self._attempt_in_turn(ask) if sure else None) is None:
                await asyncio.sleep(pause)
                if clock() - begun > EAGER_FOR:
                    pause = min(pause * 1.5, LONGEST_PAUSE)
                if ask.errand is Errand.BIND and clock() - seen_at > SURE_FOR:
                    sure = await self._is_there(ask)
                    seen_at = clock() if sure else seen_at
        finally:
            # Before it is told: what is decided then may be to ask again. And only our own entry: when we are
            # cancelled, the next asking may stand here already.
            asking = self._asking.get(key)
            if asking is not None and asking[1] is asyncio.current_task():
                del self._asking[key]
            self._silent.discard(ask.pod_uid)
        self._metrics.asks.add(errand=ask.errand.value, outcome=answer.outcome.value)
        self._answered(key, answer)

    async def _attempt_in_turn(self, ask: Ask) -> Answer | None:
        share = self._shares.setdefault(ask.namespace, asyncio.Semaphore(MOST_FOR_A_NAMESPACE))
        within = SILENT_SECONDS if ask.pod_uid in self._silent else ANSWER_SECONDS
        async with share, self._turns:
            try:
                async with asyncio.timeout(within):
                    return await self._attempt(ask)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if isinstance(error, TimeoutError):
                    self._silent.add(ask.pod_uid)
                self._metrics.asks.add(errand=ask.errand.value, outcome="NoAnswer")
                return None

    async def _attempt(self, ask: Ask) -> Answer | None:
        address = self._where(ask.ip)
        if address is None:
            return self._answer(ask, Outcome.REFUSED, f"its address {ask.ip} is not one that a pod can have.")
        say = {
            Errand.BIND: self._bind,
            Errand.SETUP: self._ask_about_setup,
            Errand.CHECK: self._ask_about_disk,
        }.get(ask.errand, self._command)
        return await say(ask, f"http://{address}/api")

    async def _bind(self, ask: Ask, url: str) -> Answer | None:
        token = bind_token(
            key=self._key, namespace=ask.namespace, pod_name=ask.pod_name, nonce=ask.bind_nonce
        )
        status, body = await self._request(
            "POST", f"{url}/bind", headers={BIND_TOKEN_HEADER: token}, body=binding(ask, self._secret(ask))
        )
        if status == 200:
            return self._answer(
                ask,
                Outcome.DONE,
                version=word(body.get("runtimeVersion")),
                spec_hash=ask.spec_hash,
                wake=ask.wake,
                walls=walls(body),
                unwritable=is_unwritable(body),
            )
        if status == 401:
            return self._answer(ask, Outcome.REFUSED, "it was made with another key of the installation.")
        if status == 409:
            return await self._recognize(ask, url)
        if 400 <= status < 500:
            said = f"it answered {status} {body.get('code')}: {body.get('message')}"
            return self._answer(ask, Outcome.REFUSED, said)
        return None

    async def _recognize(self, ask: Ask, url: str) -> Answer | None:
        """Bound already: by us, before a crash or a lost answer, or by somebody else."""
        status, body = await self._entrust(ask, "GET", url, "/lifecycle")
        if status == 200 and record(body.get("sandbox")).get("uid") != ask.sandbox_uid:
            return self._answer(ask, Outcome.REFUSED, "it is bound to another sandbox.")
        if status == 200:
            # What it goes by is not known: the time to sleep after is told once more.
            # Nor is whom it expects.
            known = replace(ask, subject="")
            version = word(body.get("runtimeVersion"))
            return self._answer(
                known, Outcome.DONE, version=version, walls=walls(body), unwritable=is_unwritable(body)
            )
        return self._answer(ask, Outcome.REFUSED, "somebody else has bound it.") if status == 401 else None

    async def _ask_about_setup(self, ask: Ask, url: str) -> Answer | None:
        status, body = await self._entrust(ask, "GET", url, "/lifecycle")
        if status != 200:
            return None
        setup = record(body.get("setup"))
        if setup.get("state") == "running":
            return None
        failed = setup.get("state") == "failed"
        result = SetupResult(
            state="Failed" if failed else "Succeeded", message=setup_message(setup) if failed else ""
        )
        return self._answer(ask, Outcome.DONE, setup=result)

    async def _ask_about_disk(self, ask: Ask, url: str) -> Answer | None:
        status, body = await self._entrust(ask, "GET", url, "/lifecycle")
        if status != 200:
            return None
        disk = record(body.get("disk"))
        full = disk.get("full") is True
        return self._answer(ask, Outcome.DONE, disk_message(disk) if full else "")

    async def _command(self, ask: Ask, url: str) -> Answer | None:
        path, body = {
            Errand.SLEEP: ("/lifecycle/sleep", {"reason": ask.subject}),
            Errand.STAY: ("/lifecycle/lease", {"seconds": STAY_SECONDS, "holder": STAY_HOLDER}),
            Errand.ADJUST: ("/lifecycle", lifecycle(ask)),
        }[ask.errand]
        status, _ = await self._entrust(ask, "POST", url, path, body=body)
        if 200 <= status < 300:
            return self._answer(ask, Outcome.DONE)
        if status == 401 or (status >= 500 and status != GOING_TO_SLEEP):
            # A moment's trouble, or another's runtime for as long as we do not know the pod's new address.
            return None
        return self._answer(ask, Outcome.REFUSED, f"it answered {status}")

    async def _entrust(
        self, ask: Ask, method: str, url: str, path: str, *, body: Json | None = None
    ) -> tuple[int, Json]:
        """With the credential, after what listens there has proved that it is the pod's own runtime: the
        address may be another pod's by now.
        """
        if ask.bind_nonce:
            nonce = secrets.token_hex(16)
            status, answer = await self._request("GET", f"{url}/prove?nonce={nonce}", headers={})
            if status >= 500:
                return status, {}
            said, wanted = str(answer.get("proof")), proof(credential=self._secret(ask), nonce=nonce)
            if not hmac.compare_digest(said.encode(errors="replace"), wanted.encode()):
                return 401, {}
        return await self._request(method, url + path, headers=self._credential(ask), body=body)

    async def _request(
        self, method: str, url: str, *, headers: dict[str, str], body: Json | None = None
    ) -> tuple[int, Json]:
        if self._session is None:
            # A connection of its own for each: what listens at an address may change at any time.
            connector = aiohttp.TCPConnector(force_close=True, limit=0)
            # The turn ends the whole of an attempt.
            limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, timeout=limits, trust_env=False)
        async with self._session.request(
            method, url, headers=headers, json=body, allow_redirects=False
        ) as response:
            text = b""
            async for chunk in response.content.iter_any():
                text += chunk
                if len(text) > LONGEST_ANSWER:
                    break
        return response.status, _decode(text)

    def _secret(self, ask: Ask) -> str:
        return credential(key=self._key, namespace=ask.namespace, pod_uid=ask.pod_uid)

    def _credential(self, ask: Ask) -> dict[str, str]:
        return {CREDENTIAL_HEADER: self._secret(ask)}

    def _answer(self, ask: Ask, outcome: Outcome, message: str = "", **more: Any) -> Answer:
        return Answer(
            pod_uid=ask.pod_uid,
            errand=ask.errand,
            outcome=outcome,
            at=self._now(),
            subject=ask.subject,
            message=message[:LONGEST_MESSAGE],
            **more,
        )


def _decode(text: bytes) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Whoever answers may be hostile: thousands of brackets are no reason to stop asking.
        return {}
    return cast("Json", value) if isinstance(value, dict) else {}
