"""One server of the official MCP SDK and one of the test's behind an MCPRoute, and the SDK's client in front of the gate.

In: {"gate": its /mcp, "port": where the server is to be}. Prints the names of the checks that passed.
"""

import asyncio
import json
import logging
import sys
import threading

import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

given = json.load(sys.stdin)
logging.disable(logging.ERROR)
passed = []

server = MCPServer("plain")


@server.tool()
def echo(text: str) -> str:
    return text.upper()


@server.tool()
def secret() -> str:
    return "nobody sees this"


async def refused(client, name, arguments, code):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        assert error.code == code, error
        return
    raise AssertionError((name, result))


async def main():
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    running = uvicorn.Server(uvicorn.Config(app, port=given["port"], log_level="error"))
    threading.Thread(target=running.run, daemon=True).start()
    while not running.started:
        await asyncio.sleep(0.01)
    async with Client(streamable_http_client(given["gate"]), mode="legacy") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["keyed__read", "plain__echo"], tools
        passed.append("tools")
        result = await client.call_tool("plain__echo", {"text": "abc"})
        assert result.content[0].text == "ABC", result
        await client.call_tool("keyed__read", {})
        passed.append("calls")
        await refused(client, "plain__secret", {}, -32602)
        await refused(client, "keyed__delete", {}, -32602)
        passed.append("hidden")
        await refused(client, "plain__echo", {"text": "xyz"}, -32000)
        passed.append("denied")
    print(json.dumps(passed))


asyncio.run(asyncio.wait_for(main(), 120))
