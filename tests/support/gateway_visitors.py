"""The API server's side of people with tokens: whose they are, and what comes with them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]

JANES = "janes-token"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def nothing(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"kind": "Status", "code": 404, "message": "nothing here"}, status=404)


@dataclass
class Visit:
    method: str
    # With the query, as it came
    path: str
    headers: Any
    body: bytes


@dataclass
class Visitors:
    """`answer` is for requests with a token; they are recorded before it is asked."""

    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = nothing
    # By token, the user of a TokenReview's status
    users: dict[str, Json] = field(
        default_factory=lambda: {JANES: {"username": "jane", "groups": ["system:authenticated"]}}
    )
    reviewed: list[str] = field(default_factory=list[str])
    visits: list[Visit] = field(default_factory=list[Visit])

    def are_meant(self, request: web.BaseRequest) -> bool:
        return "Authorization" in request.headers or request.path == TOKEN_REVIEWS

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == TOKEN_REVIEWS:
            return await self._review(request)
        body = await request.read()
        self.visits.append(Visit(request.method, request.raw_path, request.headers, body))
        return await self.answer(request)

    async def _review(self, request: web.BaseRequest) -> web.Response:
        token = (await request.json())["spec"]["token"]
        self.reviewed.append(token)
        user = self.users.get(token)
        status = {"authenticated": True, "user": user} if user else {"error": "invalid bearer token"}
        return web.json_response({"kind": "TokenReview", "status": status}, status=201)
