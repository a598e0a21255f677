"""Two servers of the official MCP SDK behind one gate, and the SDK's own client in front of it, both as they come.

In: {"gate": its /mcp, "ports": {server: port}}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import asyncio
import json
import logging
import sys
import threading
from typing import Annotated

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from pydantic import BaseModel

given = json.load(sys.stdin)
logging.disable(logging.ERROR)
passed = []


class Size(BaseModel):
    size: str


def events():
    """A server that streams, with sessions."""
    server = MCPServer("events", instructions="Ask for sizes.")

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    async def count(to: int, ctx: Context) -> str:
        for step in range(to):
            await ctx.report_progress(step + 1, to)
        return f"counted to {to}"

    def size() -> Elicit[Size]:
        return Elicit("Which size?", Size)

    @server.tool()
    def order(answer: Annotated[ElicitationResult[Size], Resolve(size)]) -> str:
        return f"{answer.action}: {answer.data.size}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Say hello to {name}."

    @server.resource("memo://{topic}")
    def memo(topic: str) -> str:
        return f"memo of {topic}"

    return server, {}


def plain():
    """A server that answers with JSON and keeps no sessions."""
    server = MCPServer("plain")

    @server.tool()
    def echo(text: str) -> str:
        return text.upper()

    @server.tool()
    def secret() -> str:
        return "nobody sees this"

    @server.tool(name="a_tool_with_a_name_that_is_much_longer_than_what_the_apis_of_models_take")
    def long() -> str:
        return "long"

    return server, {"json_response": True, "stateless_http": True}


def serve(made, port):
    server, options = made
    config = uvicorn.Config(server.streamable_http_app(**options), port=port, log_level="error")
    running = uvicorn.Server(config)
    threading.Thread(target=running.run, daemon=True).start()
    return running


def text(result):
    assert not result.is_error, result
    return result.content[0].text


async def elicited(context, params):
    assert params.message == "Which size?", params
    return ElicitResult(action="accept", content={"size": "large"})


async def check(mode):
    http = httpx2.AsyncClient(headers={"x-workload-app": "agent", "authorization": "Bearer client-key"}, timeout=60)
    transport = streamable_http_client(given["gate"], http_client=http)
    async with Client(transport, mode=mode, elicitation_callback=elicited) as client:
        expected = "2025-11-25" if mode == "legacy" else "2026-07-28"
        assert client.protocol_version == expected, client.protocol_version
        assert client.server_info.name == "tollgate"
        assert "Ask for sizes." in client.instructions
        passed.append("initialize")
        tools = [tool.name for tool in (await client.list_tools()).tools]
        long = next(name for name in tools if name.startswith("plain__a_tool"))
        assert len(long) == 64, long
        assert tools == ["events__echo", "events__count", "events__order", "plain__echo", long], tools
        passed.append("tools")
        assert text(await client.call_tool("events__echo", {"text": "é\n\"x\""})) == "é\n\"x\""
        assert text(await client.call_tool("plain__echo", {"text": "abc"})) == "ABC"
        assert text(await client.call_tool(long, {})) == "long"
        passed.append("calls")
        seen = []

        async def progressed(progress, total, message):
            seen.append((progress, total))

        counted = await client.call_tool("events__count", {"to": 3}, progress_callback=progressed)
        assert (text(counted), seen) == ("counted to 3", [(1, 3), (2, 3), (3, 3)]), (counted, seen)
        passed.append("progress")
        assert text(await client.call_tool("events__order", {})) == "accept: large"
        passed.append("elicitation")
        for name in ["plain__secret", "secret", "plain__nothing", "nowhere__echo", "dead__echo"]:
            try:
                result = await client.call_tool(name, {})
                assert name == "plain__nothing" and result.is_error, (name, result)
            except MCPError as error:
                # Without a session the server is asked now, and does not answer.
                expected = -32603 if mode == "auto" and name == "dead__echo" else -32602
                assert error.code == expected, error
        passed.append("filters")
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert prompts == ["events__greet"], prompts
        prompt = await client.get_prompt("events__greet", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Say hello to Ada."
        passed.append("prompts")
        templates = (await client.list_resource_templates()).resource_templates
        assert [of.uri_template for of in templates] == ["events+memo://{topic}"], templates
        memo = await client.read_resource("events+memo://tea")
        assert memo.contents[0].text == "memo of tea", memo
        passed.append("resources")
        if mode == "legacy":
            await client.send_ping()
        many = [client.call_tool("events__echo", {"text": str(n)}) for n in range(50)]
        assert [text(of) for of in await asyncio.gather(*many)] == [str(n) for n in range(50)]
        passed.append("fifty_at_once")


async def main():
    servers = [serve(events(), given["ports"]["events"]), serve(plain(), given["ports"]["plain"])]
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    for mode in ["legacy", "auto"]:
        await asyncio.wait_for(check(mode), 120)
    print(json.dumps(passed))


asyncio.run(main())
