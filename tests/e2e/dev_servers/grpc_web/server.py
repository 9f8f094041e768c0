# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""A gRPC-web service by sonora: `server.py PORT`. Its messages are plain text, so that nothing has to be
compiled.
"""

import asyncio
import sys

import grpc
import uvicorn
from sonora.asgi import grpcASGI

told = asyncio.Queue()


async def listen(name, context):
    """A greeting, and from then on what others tell."""
    yield f"hello {name}"
    while (word := await told.get()) != "end":
        yield word


async def tell(word, context):
    told.put_nowait(word)
    return "told"


async def refuse(name, context):
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"not for {name}")


async def page(scope, receive, send):
    """What is no call."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a gRPC-web service"})


def method(kind, function):
    return kind(function, request_deserializer=bytes.decode, response_serializer=str.encode)


methods = {
    "Listen": method(grpc.unary_stream_rpc_method_handler, listen),
    "Tell": method(grpc.unary_unary_rpc_method_handler, tell),
    "Refuse": method(grpc.unary_unary_rpc_method_handler, refuse),
}
application = grpcASGI(page, enable_cors=False)
application.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("sandpod.Words", methods),))

if __name__ == "__main__":
    uvicorn.run(application, host="0.0.0.0", port=int(sys.argv[1]), lifespan="off")
