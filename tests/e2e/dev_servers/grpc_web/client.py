# pyright: basic, reportMissingImports=false
"""A client of that service, by sonora too: `client.py URL HOST`. It tells the next word when the one
before has come back, and shows what came and how its calls ended.
"""

import asyncio
import sys

from sonora.aio import insecure_web_channel
from sonora.protocol import WebRpcError

WORDS = ("first", "x" * 100_000, "end")


async def main(url, host):
    metadata = [("host", host)]
    async with insecure_web_channel(url) as channel:

        def method(kind, name):
            return kind(f"/sandpod.Words/{name}", str.encode, bytes.decode)

        tell = method(channel.unary_unary, "Tell")
        stream = method(channel.unary_stream, "Listen")("client", metadata=metadata)
        words = iter(WORDS)
        async for word in stream:
            print(word[:20], len(word))
            await tell(next(words), metadata=metadata)
        print(await stream.trailing_metadata())
        try:
            await method(channel.unary_unary, "Refuse")("anybody", metadata=metadata)
        except WebRpcError as error:
            print(error.code(), error.details())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
