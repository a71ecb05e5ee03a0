"""The server that the official conformance suite asks for, on the Python SDK 2.x, over streamable HTTP at PORT."""

import asyncio
import base64
import json
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    Completion,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer("conformance-server")


def embedded(uri, mime_type, text):
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@server.tool()
def test_simple_text():
    """A text."""
    return [TextContent(type="text", text="This is a simple text response for testing.")]


@server.tool()
def test_image_content():
    """An image."""
    return [ImageContent(type="image", data=PIXEL, mime_type="image/png")]


@server.tool()
def test_audio_content():
    """A sound."""
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource():
    """A resource inside the result."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@server.tool()
def test_multiple_content_types():
    """A text, an image and a resource."""
    resource = embedded("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123}))
    image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [TextContent(type="text", text="Multiple content types test:"), image, resource]


@server.tool()
async def test_tool_with_logging(ctx: Context):
    """Three log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(0.05)
    return [TextContent(type="text", text="logged")]


@server.tool()
async def test_tool_with_progress(ctx: Context):
    """Three reports of progress."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await asyncio.sleep(0.05)
    return [TextContent(type="text", text="done")]


@server.tool()
def test_error_handling():
    """A tool error."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """A resource with a parameter."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with parameters."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str):
    """A prompt with a resource inside."""
    text = "Embedded resource content for testing."
    return [
        UserMessage(content=embedded(resourceUri, "text/plain", text)),
        UserMessage(content=TextContent(type="text", text="Please process the embedded resource above.")),
    ]


@server.prompt()
def test_prompt_with_image():
    """A prompt with an image."""
    return [
        UserMessage(content=ImageContent(type="image", data=PIXEL, mime_type="image/png")),
        UserMessage(content=TextContent(type="text", text="Please analyze the image above.")),
    ]


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=["test_value_1", "test_value_2"], total=2, has_more=False)


server.run("streamable-http", port=int(sys.argv[1]))
