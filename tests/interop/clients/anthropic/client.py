"""Turns resdex's resources into what Claude is sent, with the helpers of the `anthropic` package:
client.py URL, with a token in RESDEX_TOKEN."""

import asyncio
import base64
import os
import pathlib
import sys

import httpx2
from anthropic.lib.tools.mcp import async_mcp_tool, mcp_resource_to_content, mcp_resource_to_file
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

DOCUMENT, URI = pathlib.Path("notes/退款.md"), "notes:///%E9%80%80%E6%AC%BE.md"
LOGO = pathlib.Path("notes/logo.png")


async def main(url: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['RESDEX_TOKEN']}"}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    async with streamable_http_client(url, http_client=http) as streams:
        async with ClientSession(*streams[:2]) as session:
            await session.initialize()
            document = await session.read_resource(URI)
            block = mcp_resource_to_content(document)
            source = {"type": "text", "data": DOCUMENT.read_text(), "media_type": "text/plain"}
            assert dict(block) == {"type": "document", "source": source}, block
            name, content, mime_type = mcp_resource_to_file(document)
            assert (content, mime_type) == (DOCUMENT.read_bytes(), "text/markdown"), (name, mime_type)
            assert name == URI.rpartition("/")[2], name

            logo = await session.read_resource("notes:///logo.png")
            source = mcp_resource_to_content(logo)["source"]
            assert source["media_type"] == "image/png", source
            assert base64.b64decode(source["data"]) == LOGO.read_bytes(), source
            assert mcp_resource_to_file(logo) == ("logo.png", LOGO.read_bytes(), "image/png")

            listed = await session.list_tools()
            tools = {tool.name: async_mcp_tool(tool, session) for tool in listed.tools}
            assert tools["search"].to_dict()["input_schema"]["required"] == ["query"]
            [found] = await tools["search"].call({"query": "退款"})
            assert URI in found["text"], found
    print("ok")


asyncio.run(main(*sys.argv[1:]))
