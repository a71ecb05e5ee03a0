"""An engine on the Python SDK, 1.x or 2.x, that says which operator switches reached it: streamable HTTP, PORT, /mcp.

The same decision, behind a prefix for each way in which people write such a tool's signature, a tool without gates, and
one outside the contract. Every answer has `seen`: where the SDK and pydantic, between them, put a switch; and `kept`: the
data that had to arrive.
"""

import json
import sys
import unicodedata
from typing import Annotated, Any

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

try:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("echo-server", log_level="WARNING")
    transport = {"port": int(sys.argv[1]), "json_response": True}
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("echo-server", port=int(sys.argv[1]), json_response=True, log_level="WARNING")
    transport = {}

# An explicit null counts as absent: it switches nothing on.
Switch = bool | None
record = {"ran": 0, "reached": 0}


class Options(BaseModel):
    """Takes both spellings, and keeps what it doesn't know."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")
    force: Switch = None
    override_safety: Switch = Field(None, alias="overrideSafety")


class ExecuteParams(Options):
    options: Options | None = None
    items: list[Options] = []


def is_switch(key):
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).upper().lower())
    return "".join(filter(str.isalnum, folded)) in ("force", "overridesafety")


def members(value):
    if isinstance(value, BaseModel):
        declared = {name: getattr(value, name) for name in type(value).model_fields}
        return (declared | (value.model_extra or {})).items()
    return value.items()


def search(value, path):
    """Where a reader who is as lax as Python finds a switch, JSON in strings and in strings of it included."""
    if isinstance(value, str):
        # As a lax reader: what stands before the first bracket is white space to somebody.
        start = min((at for at in (value.find("{"), value.find("[")) if at >= 0), default=None)
        if start is None or value[:start].strip("\ufeff \t\r\n\0"):
            return
        try:
            value = json.loads(value[start:], object_pairs_hook=Pairs)
        except ValueError:
            return
    if isinstance(value, Pairs):
        found = value
    elif isinstance(value, (BaseModel, dict)):
        found = members(value)
    elif isinstance(value, (list, tuple)):
        found = enumerate(value)
    else:
        return
    for key, inner in found:
        here = f"{path}.{key}"
        if isinstance(key, str) and is_switch(key) and inner is not None:
            yield here
        # A string inside a document is the document's data.
        if not isinstance(inner, str):
            yield from search(inner, here)


class Pairs(list):
    """The members of an object, twins included."""


def seen(arguments):
    found = [name for name, value in arguments.items() if is_switch(name) and value is not None]
    for name, value in arguments.items():
        if not is_switch(name):
            found.extend(search(value, name))
    record["ran"] += 1
    record["reached"] += bool(found)
    return found


def receipt(decision_id, webhook_url, metadata, **arguments):
    return {
        "decision_id": decision_id,
        "webhook_url": webhook_url,
        "execution_status": "delivered",
        "response_code": 200,
        "executed_at": "2026-11-30T00:00:00Z",
        "seen": seen(arguments),
        "kept": metadata,
    }


@server.tool()
async def get_contract():
    """What ran, and how often a switch reached it."""
    return record


@server.tool(name="plain__execute_decision")
async def plain(
    decision_id: str,
    webhook_url: str,
    timeout_seconds: float = 10,
    metadata: dict | None = None,
    force: Switch = None,
    override_safety: Switch = None,
    payload: Any = None,
):
    """The contract's own signature.

    Args:
        force: Re-execute a decision that was already delivered.
        override_safety: Bypass the confidence and risk_floor gates.
    """
    switches = {"force": force, "override_safety": override_safety}
    return receipt(decision_id, webhook_url, metadata, payload=payload, **switches)


@server.tool(name="aliased__execute_decision")
async def aliased(
    decision_id: str,
    webhook_url: str,
    metadata: dict | None = None,
    force: Annotated[
        Switch,
        Field(validation_alias=AliasChoices("force", "Force", "FORCE", "--force", AliasPath("options", "force"))),
    ] = None,
    override_safety: Annotated[
        Switch,
        Field(
            validation_alias=AliasChoices(
                "overrideSafety", "override-safety", "override_safety", AliasPath("params", "items", 0, "overrideSafety")
            )
        ),
    ] = None,
):
    """Aliases, one inside an argument that has no parameter of its own."""
    return receipt(decision_id, webhook_url, metadata, force=force, override_safety=override_safety)


@server.tool(name="wrapped__execute_decision")
async def wrapped(
    decision_id: str,
    webhook_url: str,
    params: ExecuteParams = ExecuteParams(),
    metadata: dict | None = None,
):
    """A model around the rest. The SDK reads it from JSON text as well."""
    return receipt(decision_id, webhook_url, metadata, params=params)


@server.tool(name="text__execute_decision")
async def text(
    decision_id: str,
    webhook_url: str,
    params: str = "",
    payload: Any = None,
    payloads: list | dict | str | None = None,
    metadata: dict | None = None,
):
    """JSON in strings: one that the tool reads, two that the SDK reads for it."""
    return receipt(decision_id, webhook_url, metadata, params=params, payload=payload, payloads=payloads)


@server.tool()
async def simulate(scenario: dict, force: Switch = None, override_safety: Switch = None):
    """A tool without gates: what its scenario holds is physics."""
    return {"seen": seen({"force": force, "override_safety": override_safety}), "kept": scenario}


@server.tool()
async def rerun(
    params: ExecuteParams = ExecuteParams(),
    payload: Any = None,
    metadata: Any = None,
    force: Annotated[Switch, Field(validation_alias=AliasChoices("force", "Force", AliasPath("options", "force")))] = None,
    overrideSafety: Annotated[Switch, Field(alias="overrideSafety")] = None,
):
    """A tool that the contract doesn't know, with the same switches."""
    switches = {"force": force, "overrideSafety": overrideSafety}
    return {"seen": seen({"params": params, "payload": payload, "metadata": metadata, **switches}), "kept": None}


server.run("streamable-http", **transport)
