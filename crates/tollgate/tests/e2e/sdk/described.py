"""The official MCP SDK's client in front of a gate whose server is an HTTP API, in both kinds of versions.

In: {"gate": its /mcp}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import asyncio
import json
import logging
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

given = json.load(sys.stdin)
logging.disable(logging.ERROR)
passed = []


async def check(mode):
    http = httpx2.AsyncClient(headers={"x-workload-app": "agent"}, timeout=60)
    transport = streamable_http_client(given["gate"], http_client=http)
    async with Client(transport, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["pets__listPets", "pets__addPet", "pets__getPet", "pets__removePet"], tools
        add = tools[1]
        assert add.input_schema["properties"]["body"]["properties"]["tag"] == {"type": "string"}, add
        assert tools[0].annotations.read_only_hint and not add.annotations.read_only_hint, tools
        passed.append("tools")
        listed = await client.call_tool("pets__listPets", {"tags": ["a&b"]})
        assert listed.structured_content["asked"] == "/v1/pets?tags=a%26b", listed
        added = await client.call_tool("pets__addPet", {"body": {"name": "Rex"}})
        assert added.structured_content == {"name": "Rex"}, added
        passed.append("calls")
        missing = await client.call_tool("pets__getPet", {"petId": "none"})
        assert missing.is_error and "HTTP 404" in missing.content[0].text, missing
        wrong = await client.call_tool("pets__getPet", {})
        assert wrong.is_error and "`petId` is missing" in wrong.content[0].text, wrong
        passed.append("errors")
        many = [client.call_tool("pets__getPet", {"petId": str(n)}) for n in range(50)]
        assert [of.content[0].text for of in await asyncio.gather(*many)] == [f"pet at /v1/pets/{n}" for n in range(50)]
        passed.append("fifty_at_once")


async def main():
    for mode in ["legacy", "auto"]:
        await asyncio.wait_for(check(mode), 120)
    print(json.dumps(passed))


asyncio.run(main())
