"""The client of the official Python SDK, as it comes: it asks a server of the conformance suite for one of everything and prints what it was
told, so that what it is told by the server itself and through a gate can be compared.

python client.py URL MODE: `legacy`, or `auto`, which speaks the version without sessions where the server does."""

import asyncio
import json
import sys

from mcp import Client
from mcp.shared.exceptions import MCPError

url, mode = sys.argv[1:]


def plain(of):
    return [one.model_dump(mode="json", exclude_none=True) for one in of]


async def main():
    told = {}
    async with Client(url, mode=mode) as client:
        told["tools"] = sorted(tool.name for tool in (await client.list_tools()).tools)
        told["prompts"] = sorted(prompt.name for prompt in (await client.list_prompts()).prompts)
        told["resources"] = sorted(str(of.uri) for of in (await client.list_resources()).resources)
        told["text"] = plain((await client.call_tool("test_simple_text", {})).content)
        told["error"] = (await client.call_tool("test_error_handling", {})).is_error
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        told["prompt"] = plain(prompt.messages)
        told["resource"] = plain((await client.read_resource("test://static-text")).contents)
        try:
            told["refused"] = (await client.call_tool("nobody_has_this", {})).is_error
        except MCPError:
            told["refused"] = True
    print(json.dumps(told, sort_keys=True))


asyncio.run(asyncio.wait_for(main(), 60))
