"""A client on the Python SDK, 1.x or 2.x: plays the stub's scenarios at URL and prints what came back, as JSON."""

import asyncio
import json
import sys

HOOK = "https://hooks.example/algenta"
BOTH = {"force": True, "override_safety": True}
SCENARIOS = [
    ("decision-hold", {}),
    ("decision-hold", {}),
    ("decision-hold", {"override_safety": True}),
    ("decision-hold", {"force": True}),
    ("decision-low-confidence", {}),
    ("decision-low-confidence", {"force": True}),
    ("decision-low-confidence", {"override_safety": True}),
    ("decision-low-risk-floor", {}),
    ("decision-low-risk-floor", {"override_safety": True}),
    ("decision-two-gates", {}),
    ("decision-two-gates", {"force": True}),
    ("decision-two-gates", BOTH),
    ("decision-failed-delivery", {}),
    ("decision-failed-delivery", {}),
    ("decision-malformed-receipt", {}),
]


async def play(call):
    played = []
    for decision_id, switches in SCENARIOS:
        result = await call("execute_decision", {"decision_id": decision_id, "webhook_url": HOOK, **switches})
        result = result.model_dump(by_alias=True)
        played.append([decision_id, result["isError"], result["content"][0]["text"]])
    print(json.dumps(played))


async def main(url):
    try:
        from mcp import Client
    except ImportError:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            await play(session.call_tool)
    else:
        async with Client(url) as client:
            await play(client.call_tool)


asyncio.run(main(sys.argv[1]))
