"""The gateway's part in the small API server: `sleep` and `ports`, with URLs of the test's own."""

from aiohttp import web

from tests.support.api_objects import Json, Refused, Store, ready_status, status


async def beside(request: web.Request, sandbox: Json, store: Store) -> web.Response:
    word, _, rest = request.match_info["beside"].partition("/")
    if word == "sleep":
        said = ready_status(phase="Asleep", ready=False, reason="Requested", message="It sleeps.")
        store.write(sandbox, said)
        return web.json_response(status(202, "", "going to sleep") | {"status": "Success"}, status=202)
    exposed: dict[int, Json] = sandbox.setdefault("exposed", {})
    if not rest and request.method == "GET":
        return web.json_response({"items": [shown(sandbox, exposed[port]) for port in sorted(exposed)]})
    if not rest:
        wish: Json = await request.json()
        entry = exposed.setdefault(wish["port"], {"access": "Token", "tokenVersion": 1})
        entry |= wish
        return web.json_response(shown(sandbox, entry), status=201)
    port = int(rest.removesuffix("/rotate").removesuffix("/login"))
    if port not in exposed:
        raise Refused(status(404, "NotFound", f"port {port} is not exposed"))
    if request.method == "DELETE":
        del exposed[port]
        return web.json_response({"kind": "Status", "status": "Success"})
    if rest.endswith("/login"):
        link = shown(sandbox, exposed[port])["url"] + ".sandpod/login?code=secret"
        return web.json_response({"kind": "SandboxPortLogin", "url": link}, status=201)
    exposed[port]["tokenVersion"] += 1
    return web.json_response(shown(sandbox, exposed[port]))


def shown(sandbox: Json, entry: Json) -> Json:
    name, version = sandbox["metadata"]["name"], entry["tokenVersion"]
    return {
        **entry,
        "url": f"http://{entry['port']}-{name}-v{version}.sandpod.localhost/",
        "inherited": False,
    }
