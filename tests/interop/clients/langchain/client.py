"""Loads resdex's resources as LangChain does: client.py URL, with a token in RESDEX_TOKEN."""

import asyncio
import os
import pathlib
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

DOCUMENT, URI = pathlib.Path("notes/退款.md"), "notes:///%E9%80%80%E6%AC%BE.md"
LOGO = pathlib.Path("notes/logo.png")


async def main(url: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['RESDEX_TOKEN']}"}
    server = {"transport": "streamable_http", "url": url, "headers": headers, "timeout": 60}
    client = MultiServerMCPClient({"resdex": server})
    async with client.session("resdex") as session:
        # Every listed resource is read.
        blobs = {str(blob.metadata["uri"]): blob for blob in await load_mcp_resources(session)}
        assert blobs[URI].as_string() == DOCUMENT.read_text(), blobs[URI]
        assert blobs[URI].mimetype == "text/markdown", blobs[URI]
        logo = blobs["notes:///logo.png"]
        assert (logo.as_bytes(), logo.mimetype) == (LOGO.read_bytes(), "image/png"), logo
        assert "借贷平衡" in blobs["design://docs/ledger/v3"].as_string()
        assert "runbook://failover" not in blobs, "it is outside the scope"

        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        found = await tools["search"].ainvoke({"query": "退款"})
        assert URI in str(found), found
        fetched = await tools["fetch"].ainvoke({"id": URI})
        assert "十四天" in str(fetched), fetched
    # As an application names what it wants.
    [design] = await client.get_resources("resdex", uris="design://docs/ledger/v3")
    assert "借贷平衡" in design.as_string(), design
    print("ok")


asyncio.run(main(*sys.argv[1:]))
