"""The table of endpoints as an OpenAPI 3.1 document. The models in it are those that the handlers use."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from sandpod_runtime import __version__
from sandpod_runtime.errors import STATUS
from sandpod_runtime.gate import BIND, CREDENTIAL_HEADER, GREETING, PROVE
from sandpod_runtime.models.common import ErrorReply
from sandpod_runtime.routing import Endpoint, Model, Routes
from sandpod_runtime.wire import LARGEST_BODY

Json = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_OPEN = (GREETING, BIND, PROVE)
_DESCRIPTION = f"""\
Every error has the same shape, and a client can go by its `code`. Any endpoint may answer 401
`UNAUTHENTICATED`, 403 `PERMISSION_DENIED`, 503 `CONTAINER_UNAVAILABLE` (not bound yet, or stopping: nothing
was done) and 500 `INTERNAL_ERROR` (a fault of the runtime's own). One that reads a body answers 400
`VALIDATION_FAILED` to one that it cannot use, 413 `FILE_TOO_LARGE` to JSON of more than
{LARGEST_BODY >> 20} MiB, and 409 `RESOURCE_BUSY` while its memory for bodies is in use. Fields that it
does not know are ignored. Streams are server-sent events: one line `data: <JSON>` for each, and a comment
every 15 seconds while nothing happens."""


def document(routes: Routes) -> Json:
    schemas = _Schemas(routes)
    paths: Json = {}
    for (method, path), endpoint in routes.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sandpod runtime", "version": __version__, "description": _DESCRIPTION},
        "security": [{"credential": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(endpoint.tag for endpoint in routes.values())],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {
                "Error": {
                    "description": "An error",
                    "content": {"application/json": {"schema": schemas.of(ErrorReply)}},
                }
            },
            "securitySchemes": {
                "credential": {
                    "type": "apiKey",
                    "in": "header",
                    "name": CREDENTIAL_HEADER,
                    "description": "Not with --insecure.",
                }
            },
        },
    }


class _Schemas:
    """The JSON schemas of all models, by model."""

    def __init__(self, routes: Routes) -> None:
        sent = {model: None for each in routes.values() for model in (*_replies(each), *each.events)} | {
            ErrorReply: None
        }
        read = {
            model: None for each in routes.values() for model in (each.body, each.query) if model is not None
        }
        models = [*sent, *(model for model in read if model not in sent)]
        found, self.components = msgspec.json.schema_components(
            models, schema_hook=_anything, ref_template=_REFERENCE
        )
        self._by_model = dict(zip(models, found, strict=True))
        for model in sent:
            # A default of a reply's is not one that the client may leave out, but what it gets.
            always = [each.encode_name for each in msgspec.structs.fields(model) if each.default is not UNSET]
            schema = self.resolved(model)
            schema["required"] = [
                name for name in schema["properties"] if name in always or name in schema["required"]
            ]

    def of(self, model: Model) -> Json:
        return self._by_model[model]

    def resolved(self, model: Model) -> Json:
        return self.components[self.of(model)["$ref"].rpartition("/")[2]]


def _replies(endpoint: Endpoint) -> list[Model]:
    return [each for each in (endpoint.reply, endpoint.other_reply) if each is not None]


def _anything(of: type) -> Json:
    if of is object:
        return {"description": "Anything."}
    raise NotImplementedError


def _operation(method: str, path: str, endpoint: Endpoint, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": re.sub(
            r"[^A-Za-z0-9]+(.)?", lambda match: (match[1] or "").upper(), f"{method.lower()}{path}"
        ),
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
    }
    if (method, path) in _OPEN:
        operation["security"] = []
    if parameters := [*_path_parameters(path), *_query_parameters(endpoint, schemas)]:
        operation["parameters"] = parameters
    if content := _accepted(endpoint, schemas):
        operation["requestBody"] = {"required": True, "content": content}
    operation["responses"] = {**_success(endpoint, schemas), **_errors(endpoint), "default": _ERROR}
    return operation


def _path_parameters(path: str) -> Iterator[Json]:
    for name in re.findall(r"{([^}]+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(endpoint: Endpoint, schemas: _Schemas) -> Iterator[Json]:
    if endpoint.query is None:
        return
    schema = schemas.resolved(endpoint.query)
    for name, field in schema["properties"].items():
        yield {"name": name, "in": "query", "required": name in schema["required"], "schema": field}


def _accepted(endpoint: Endpoint, schemas: _Schemas) -> Json:
    content: Json = {}
    if endpoint.body is not None:
        content["application/json"] = {"schema": schemas.of(endpoint.body)}
    if endpoint.accepts:
        content[endpoint.accepts] = {}
    return content


def _success(endpoint: Endpoint, schemas: _Schemas) -> Json:
    if endpoint.websocket:
        return {"101": {"description": endpoint.websocket}}
    content: Json = {}
    replies = [schemas.of(each) for each in _replies(endpoint)]
    if replies:
        content["application/json"] = {"schema": replies[0] if len(replies) == 1 else {"anyOf": replies}}
    if endpoint.events:
        content["text/event-stream"] = {"schema": {"oneOf": [schemas.of(each) for each in endpoint.events]}}
    if endpoint.media:
        content[endpoint.media] = {}
    # Some paths are there only to refuse.
    return {"200": {"description": "Success", "content": content}} if content else {}


_ERROR = {"$ref": "#/components/responses/Error"}


def _errors(endpoint: Endpoint) -> Json:
    by_status: dict[int, list[str]] = {}
    for code in endpoint.errors:
        by_status.setdefault(STATUS[code], []).append(f"`{code}`")
    return {
        str(status): {
            "description": ", ".join(codes),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorReply"}}},
        }
        for status, codes in sorted(by_status.items())
    }
