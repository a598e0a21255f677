"""A WebSocket service, and a client that talks to it through the gate, both of the library `websockets`.

Input: `listen` (the service's port), `url` (through the gate), `headers`. Prints what came back.
"""

import asyncio
import json
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import InvalidStatus


async def service(socket):
    await socket.send("first " + (socket.subprotocol or ""))
    async for message in socket:
        if message == "close":
            await socket.close(4000, "as asked")
            return
        await socket.send(message)


async def main(asked):
    said = {}
    async with serve(service, "127.0.0.1", asked["listen"], subprotocols=["chat"], max_size=None):
        headers = asked["headers"]
        options = {"additional_headers": headers, "subprotocols": ["chat"], "max_size": None, "compression": None}
        async with connect(asked["url"], **options) as socket:
            said["first"] = await socket.recv()
            await socket.send("text")
            said["text"] = await socket.recv()
            large = bytes(range(256)) * 8192
            # Many at once, both ways: neither waits for the other.
            await asyncio.gather(*(socket.send(large) for _ in range(4)))
            said["large"] = [await socket.recv() == large for _ in range(4)]
            said["pong"] = await (await socket.ping()) >= 0
            await socket.send("close")
            try:
                await socket.recv()
            except Exception as ended:
                said["closed"] = [ended.rcvd.code, ended.rcvd.reason]
        try:
            async with connect(asked["url"], **options):
                said["second"] = "let in"
        except InvalidStatus as refused:
            said["second"] = refused.response.status_code
    return said


print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
