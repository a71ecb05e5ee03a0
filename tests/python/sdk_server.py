"""An engine on the Python SDK, 1.x or 2.x: the decisions of the stub, over streamable HTTP at /mcp.

Instead of a port, `stdio` has it talk over its standard input and output. MODE says how a gate's denial leaves the tool:
  raise        as an exception of Python's own
  tool-error   as the SDK's ToolError
  return       as an ordinary result
  data         as the SDK's protocol error, with the denial in `data`
  data-lowlevel  the same on the low-level server, where the SDK 1.x has it reach the wire
"""

import json
import sys
from typing import Any

try:
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.shared.exceptions import MCPError

    SDK = 2
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.shared.exceptions import McpError
    from mcp.types import ErrorData

    SDK = 1

STDIO = sys.argv[1] == "stdio"
PORT = 0 if STDIO else int(sys.argv[1])
MODE = sys.argv[2]
WITHHELD = "Execution blocked by policy"

executed = {}
switches = []
delivered = {"decision-two-gates"}


def blocked(gate, message, hint):
    body = {"error": {"code": f"execution_blocked_{gate}", "gate": gate, "message": message, "override_hint": hint}}
    if MODE == "return":
        return body
    if MODE == "raise":
        raise RuntimeError(json.dumps(body))
    if MODE == "tool-error":
        raise ToolError(json.dumps(body))
    if SDK == 2:
        raise MCPError(-32000, WITHHELD, body)
    raise McpError(ErrorData(code=-32000, message=WITHHELD, data=body))


def execute(decision_id, webhook_url, force=False, override_safety=False):
    switches.extend(name for name, on in (("force", force), ("override_safety", override_safety)) if on)
    if decision_id == "decision-crash":
        raise RuntimeError("the webhook's table is gone")
    if decision_id in delivered and not force:
        hint = "Pass force=true to override the idempotency gate for one re-execution."
        return blocked("idempotency", f"decision {decision_id} has already been delivered", hint)
    hint = "Pass override_safety=true to bypass."
    if decision_id in ("decision-low-confidence", "decision-two-gates") and not override_safety:
        return blocked("confidence", "decision confidence 0.41 is below policy.min_confidence 0.6", hint)
    if decision_id == "decision-low-risk-floor" and not override_safety:
        return blocked("risk_floor", "risk_p5 -0.42 is below -policy.risk_floor -0.25", hint)
    failed = decision_id == "decision-failed-delivery"
    executed[decision_id] = executed.get(decision_id, 0) + 1
    if not failed:
        delivered.add(decision_id)
    receipt = {
        "decision_id": decision_id,
        "webhook_url": webhook_url,
        "execution_status": "failed" if failed else "delivered",
        "response_code": 500 if failed else 200,
        "executed_at": "2026-11-30T00:00:00Z",
        "policy_snapshot_id": "ps_1",
        "schema_snapshot_id": "ss_1",
        "manifest_version": "1",
        "payload_summary": {"bytes": 10},
        "safety_overridden": override_safety,
    }
    if decision_id == "decision-malformed-receipt":
        del receipt["execution_status"]
    return receipt


def record():
    return {"executed": executed, "switches": switches}


def with_decorators():
    server = Server("sdk-server") if SDK == 2 else Server("sdk-server", port=PORT, stateless_http=False)

    # Without a return type, a result is text, and nothing is structured but what `return` is asked to return.
    @server.tool()
    def get_contract():
        """What the engine can do; here, what it has done."""
        return record()

    def execute_decision(
        decision_id: str,
        webhook_url: str,
        timeout_seconds: float = 10,
        metadata: dict | None = None,
        force: bool = False,
        override_safety: bool = False,
    ):
        """Execute a logged decision by delivering it to a webhook.

        Args:
            force: Re-execute a decision that was already delivered.
            override_safety: Bypass the confidence and risk_floor gates.
        """
        return execute(decision_id, webhook_url, force, override_safety)

    if MODE == "return":
        execute_decision.__annotations__["return"] = dict[str, Any]
    server.tool()(execute_decision)
    if STDIO:
        server.run("stdio")
    elif SDK == 2:
        server.run("streamable-http", port=PORT)
    else:
        server.run("streamable-http")


def low_level():
    import contextlib

    import uvicorn
    from mcp import types
    from mcp.server.lowlevel import Server as LowLevel
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    server = LowLevel("sdk-server")
    text = {"type": "string"}
    flag = {"type": "boolean"}
    properties = {"decision_id": text, "webhook_url": text, "force": flag, "override_safety": flag}
    schema = {"type": "object", "properties": properties, "required": ["decision_id", "webhook_url"]}

    @server.list_tools()
    async def list_tools():
        return [
            types.Tool(name="get_contract", inputSchema={"type": "object"}),
            types.Tool(name="execute_decision", inputSchema=schema),
        ]

    # The SDK's own decorator for calls turns every exception into a text, so this one stands beside it.
    async def call_tool(request):
        arguments = request.params.arguments or {}
        known = {name: arguments[name] for name in properties if name in arguments}
        result = record() if request.params.name == "get_contract" else execute(**known)
        content = [types.TextContent(type="text", text=json.dumps(result))]
        return types.ServerResult(types.CallToolResult(content=content))

    server.request_handlers[types.CallToolRequest] = call_tool
    manager = StreamableHTTPSessionManager(server, json_response=True)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with manager.run():
            yield

    async def handle(scope, receive, send):
        await manager.handle_request(scope, receive, send)

    uvicorn.run(Starlette(routes=[Mount("/", app=handle)], lifespan=lifespan), port=PORT)


if MODE == "data-lowlevel":
    low_level()
else:
    with_decorators()
