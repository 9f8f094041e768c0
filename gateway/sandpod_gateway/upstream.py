"""What comes back on a connection to a runtime: the head of its answer, and whether that answer says that
nothing was done, because the runtime is going to sleep or is another one than was meant. And what the gateway
asks on its own behalf: who it is, and whether it stays awake.

Addresses of pods are used again, and the watch that tells of a pod's end may lag. So each new connection
begins with a nonce, to which only the runtime that was given the pod's credential knows the answer; before it
nothing is sent, not even the credential. It holds for as long as the connection does, because the other end
of a connection stays who it is.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from aiohttp import ClientError, hdrs
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from sandpod_crds.keys import proof
from sandpod_crds.names import CREDENTIAL_HEADER, PROVE_PATH

from .addresses import Address, host_header
from .errors import NotReady, PodLeaving
from .leases import HOLDER
from .pool import Connection, Lease, Pool

log = logging.getLogger(__name__)

Json = dict[str, Any]

LOST: Final = (ClientError, HttpProcessingError, ConnectionError)
# A runtime that is alive answers this in a millisecond.
ANSWER_SECONDS: Final = 5.0
# A refusal of the runtime is a few hundred bytes; more than this is not looked into.
_REFUSAL_BYTES: Final = 16 * 1024
# What it says about its life lists everybody who holds a lease.
_LIFECYCLE_BYTES: Final = 128 * 1024
_MAX_LINE: Final = 16 * 1024
_MAX_HEADERS: Final = 256
_GONE: Final = "it may just have gone away"
_NONCE_BYTES: Final = 16


def expect_answer(connection: Connection, *, without_body: bool = False) -> None:
    """To be called before each request."""
    connection.set_response_params(
        skip_payload=without_body,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_MAX_LINE,
        max_field_size=_MAX_LINE,
        max_headers=_MAX_HEADERS,
    )


async def answer_of(connection: Connection) -> tuple[RawResponseMessage, StreamReader]:
    while True:
        message, payload = await connection.read()
        # What comes before the answer (100, 103) is between the two ends of this connection.
        if message.code >= 200 or message.code == 101:
            connection.reading = payload
            return message, payload


async def unless_refused(message: RawResponseMessage, payload: StreamReader) -> bytes:
    """A runtime that is going to sleep, and one that does not know our credential because it is another
    pod's, refuse before doing anything. Every other 401 and 503 is an answer: what was read of it is
    returned.
    """
    if message.code not in (401, 503):
        return b""
    data = await _small(message, payload, most=_REFUSAL_BYTES)
    _raise_if_refused(message, data)
    return data


def _raise_if_refused(message: RawResponseMessage, data: bytes) -> None:
    if message.code not in (401, 503):
        return
    code = _object(data).get("code")
    if code == "CONTAINER_UNAVAILABLE":
        raise PodLeaving("the sandbox is just going to sleep, and nothing was done", certain=True)
    if code == "UNAUTHENTICATED":
        raise PodLeaving("the sandbox's pod has just been replaced, and the new one is not known here yet")


@contextlib.asynccontextmanager
async def connection_to(
    pool: Pool, *, pod_uid: str, address: Address, credential: str
) -> AsyncGenerator[Lease, None]:
    """One connection to the runtime of this very pod. Raises PodLeaving when somebody else answers there."""
    while True:
        async with pool.lease(address) as lease:
            connection = lease.connection
            if not connection.proved:
                await _prove(connection, address=address, credential=credential)
                connection.proved = pod_uid
            if connection.proved == pod_uid:
                yield lease
                return
        # One that was kept of an earlier pod of this address, and is closed now.


async def _prove(connection: Connection, *, address: Address, credential: str) -> None:
    nonce = secrets.token_hex(_NONCE_BYTES)
    request = (
        f"GET {PROVE_PATH}?nonce={nonce} HTTP/1.1\r\nHost: ".encode() + host_header(address) + b"\r\n\r\n"
    )
    message, data = await _ask(connection, request, most=_REFUSAL_BYTES, doing="was asked who it is")
    said = _object(data).get("proof")
    wanted = proof(credential=credential, nonce=nonce)
    if not isinstance(said, str) or not hmac.compare_digest(said.encode(errors="replace"), wanted.encode()):
        log.warning("what answers at %s (%d) is not the runtime that was meant", address, message.code)
        raise PodLeaving("another pod, or none of ours, has the address of the sandbox's pod by now")


async def ask_for_lease(
    pool: Pool, *, pod_uid: str, address: Address, credential: str, seconds: float
) -> None:
    """Returns when the runtime has promised to stay awake for so long: the runtime of this pod, which has
    proved it on the same connection. So for as long as the lease holds, this is the pod's address.
    """
    request = _command("lease", {"seconds": seconds, "holder": HOLDER}, address, credential)
    async with connection_to(pool, pod_uid=pod_uid, address=address, credential=credential) as lease:
        data = await _obeyed(lease, request, doing="was asked to stay awake")
    if data.get("phase") != "running":
        # Granted in the moment of the decision, too late to keep it awake.
        raise PodLeaving("the sandbox is just going to sleep, and nothing was done", certain=True)


async def ask_to_sleep(pool: Pool, *, pod_uid: str, address: Address, credential: str) -> None:
    """Returns when the runtime of this pod takes no more requests. PodLeaving: it did so before."""
    request = _command("sleep", {"reason": "asked for at the gateway"}, address, credential)
    async with connection_to(pool, pod_uid=pod_uid, address=address, credential=credential) as lease:
        await _obeyed(lease, request, doing="was told to sleep")


def _command(name: str, value: Json, address: Address, credential: str) -> bytes:
    body = json.dumps(value).encode()
    return b"".join(
        (
            f"POST /api/lifecycle/{name} HTTP/1.1\r\nHost: ".encode() + host_header(address) + b"\r\n",
            f"{CREDENTIAL_HEADER}: {credential}\r\nContent-Type: application/json\r\n".encode(),
            f"Content-Length: {len(body)}\r\n\r\n".encode(),
            body,
        )
    )


async def _obeyed(lease: Lease, request: bytes, *, doing: str) -> Json:
    """What the runtime says of its life after it."""
    message, data = await _ask(lease.connection, request, most=_LIFECYCLE_BYTES, doing=doing)
    lease.reusable = True
    _raise_if_refused(message, data)
    if message.code != 200:
        raise NotReady(f"the runtime answered {message.code} when it {doing}")
    return _object(data)


async def _ask(
    connection: Connection, request: bytes, *, most: int, doing: str
) -> tuple[RawResponseMessage, bytes]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            expect_answer(connection)
            if connection.transport is None:
                raise ConnectionResetError
            connection.transport.write(request)
            message, payload = await answer_of(connection)
            return message, await _small(message, payload, most=most)
    except LOST as error:
        raise PodLeaving(f"the sandbox's pod broke off when it {doing}; {_GONE}") from error
    except TimeoutError as error:
        raise PodLeaving(f"the sandbox's pod does not answer; {_GONE}") from error


async def _small(message: RawResponseMessage, payload: StreamReader, *, most: int) -> bytes:
    """The whole body; nothing when it is none that we would look into."""
    length = message.headers.get(hdrs.CONTENT_LENGTH, "")
    if not length.isdigit() or int(length) > most:
        return b""
    try:
        return await payload.read()
    except LOST as error:
        raise PodLeaving(f"the sandbox's pod broke off while it refused this; {_GONE}") from error


def _object(data: bytes) -> Json:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        # RecursionError: whatever runs in the pod may answer with a thousand brackets.
        return {}
    return cast("Json", value) if isinstance(value, dict) else {}
