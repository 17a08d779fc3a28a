"""The resources that the protocol's conformance scenarios ask a server for, over stdio."""

import base64

from mcp.server.mcpserver import MCPServer

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

mcp = MCPServer("conformance", log_level="WARNING")


@mcp.resource("test://static-text", mime_type="text/plain")
def text() -> str:
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png")
def binary() -> bytes:
    return base64.b64decode(PIXEL)


@mcp.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "What is subscribed to."


@mcp.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict:
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


mcp.run()
