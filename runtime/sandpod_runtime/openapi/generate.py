"""The endpoints of a runtime that is assembled but never serves: what the committed page is made from."""

from sandpod_runtime.assembly import Parts, router
from sandpod_runtime.options import Options
from sandpod_runtime.routing import Routes

PAGE = "docs/reference/runtime-api.md"


async def routes_of_a_runtime() -> Routes:
    return router(Parts(Options(insecure=True), image={}, open_files=None)).everything()
