"""Uses resdex as the OpenAI Agents SDK does: client.py URL, with a token in RESDEX_TOKEN."""

import asyncio
import json
import os
import pathlib
import sys

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp
from agents.tool_context import ToolContext

DOCUMENT, URI = pathlib.Path("notes/退款.md"), "notes:///%E9%80%80%E6%AC%BE.md"


async def main(url: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['RESDEX_TOKEN']}"}
    server = MCPServerStreamableHttp(
        params={"url": url, "headers": headers, "timeout": 60}, client_session_timeout_seconds=60
    )
    async with server:
        listed = await server.list_resources()
        uris = [str(resource.uri) for resource in listed.resources]
        assert URI in uris and "runbook://failover" not in uris, uris
        templates = await server.list_resource_templates()
        templates = [template.uri_template for template in templates.resource_templates]
        assert "{+uri}" in templates and "design://docs/{docId}/{+version}" in templates, templates
        for uri, text in [(URI, DOCUMENT.read_text()), ("design://docs/ledger/v3", "借贷平衡")]:
            read = await server.read_resource(uri)
            assert text in read.contents[0].text, read

        # The tools as an agent has them: with strict schemas, called with a model's JSON.
        agent = Agent(name="bot", mcp_servers=[server], mcp_config={"convert_schemas_to_strict": True})
        tools = {tool.name: tool for tool in await agent.get_mcp_tools(RunContextWrapper(None))}
        assert set(tools) == {"search", "fetch", "list_servers"}, tools

        async def call(name: str, **arguments: object) -> str:
            text = json.dumps(arguments)
            context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
            return str(await tools[name].on_invoke_tool(context, text))

        assert URI in await call("search", query="退款", limit=None)
        assert "十四天" in await call("fetch", id=URI, lines="1-3", max_tokens=200)
        assert "notes" in await call("list_servers")
    print("ok")


asyncio.run(main(*sys.argv[1:]))
