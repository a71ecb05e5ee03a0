"""Clients that agent frameworks bring: lists, calls and executes twice at URL, and prints what its user gets, as JSON.

python clients.py LIBRARY URL
"""

import asyncio
import json
import sys

SIMULATE = {"scenario": "expand-to-eu"}
EXECUTE = {
    "decision_id": "decision-7",
    "webhook_url": "https://hooks.example/algenta",
    "force": True,
    "overrideSafety": True,
}


async def attempt(call):
    """What comes of a call: a result, or a failure, by exception or by flag."""
    try:
        return ["result", str(await call)]
    except Exception as error:
        return ["failure", f"{type(error).__name__}: {error}"]


async def play(names, schemas, call):
    print(
        json.dumps(
            {
                "names": sorted(names),
                "schemas": json.dumps(schemas, default=str),
                "simulate": await attempt(call("simulate", SIMULATE)),
                "execute": await attempt(call("execute_decision", EXECUTE)),
                "again": await attempt(call("execute_decision", EXECUTE)),
                "excluded": await attempt(call("query_batch", {})),
            }
        )
    )


async def mcp1(url):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        await play([tool.name for tool in tools], [tool.model_dump() for tool in tools], session.call_tool)


async def mcp2(url):
    from mcp import Client

    async with Client(url) as client:
        tools = (await client.list_tools()).tools
        await play([tool.name for tool in tools], [tool.model_dump() for tool in tools], client.call_tool)


async def agent_framework(url):
    from agent_framework import MCPStreamableHTTPTool

    async with MCPStreamableHTTPTool("algenta", url, load_prompts=False) as tool:
        functions = tool.functions

        async def call(name, arguments):
            return await tool.call_tool(name, **arguments)

        schemas = [[function.description, function.parameters()] for function in functions]
        await play([function.name for function in functions], schemas, call)


async def pydantic_ai(url):
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(url) as toolset:
        tools = await toolset.list_tools()

        async def call(name, arguments):
            return await toolset.direct_call_tool(name, arguments)

        await play([tool.name for tool in tools], [tool.model_dump() for tool in tools], call)


async def fastmcp(url):
    from fastmcp import Client

    async with Client(url) as client:
        tools = await client.list_tools()
        await play([tool.name for tool in tools], [tool.model_dump() for tool in tools], client.call_tool)


async def langchain(url):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"algenta": {"transport": "streamable_http", "url": url}})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name, arguments):
        if name not in tools:
            raise KeyError(name)
        return await tools[name].ainvoke(arguments)

    await play(list(tools), [[tool.description, tool.args_schema] for tool in tools.values()], call)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
