"""Uses resdex as an MCP server, as a client written with the Python SDK would, in one era.

client.py ERA URL, with its token in RESDEX_TOKEN, or client.py ERA COMMAND ARGUMENT…: prints `ok`, or fails
with what is wrong.
"""

import asyncio
import os
import pathlib
import sys
import warnings

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ResourceTemplateReference

warnings.simplefilter("ignore")
DOCUMENT, URI = pathlib.Path("notes/退款.md"), "notes:///%E9%80%80%E6%AC%BE.md"
DESIGNS = "design://docs/{docId}/{+version}"


async def main(era: str, target: str, *arguments: str) -> None:
    pushed: asyncio.Queue[str] = asyncio.Queue()

    async def told(message: object) -> None:
        uri = getattr(getattr(message, "params", None), "uri", None)
        if uri is not None:
            await pushed.put(str(uri))

    if arguments:
        server = StdioServerParameters(command=target, args=list(arguments), env=dict(os.environ))
    else:
        headers = {"Authorization": f"Bearer {os.environ['RESDEX_TOKEN']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        server = streamable_http_client(target, http_client=http)
    async with Client(server, mode=era, message_handler=told, read_timeout_seconds=60) as client:
        listed = await client.list_resources()
        uris = [str(resource.uri) for resource in listed.resources]
        assert URI in uris and "design://docs/ledger/v3" in uris, uris
        assert bool(arguments) == ("runbook://failover" in uris), f"only the token has a scope: {uris}"
        read = await client.read_resource(URI)
        assert read.contents[0].text == DOCUMENT.read_text(), read

        templates = await client.list_resource_templates()
        templates = [template.uri_template for template in templates.resource_templates]
        assert "{+uri}" in templates and DESIGNS in templates, templates
        await completions(client, not arguments)
        # What a template gives is read from its server, whether or not it was ever listed.
        design = await client.read_resource("design://docs/ledger/v3")
        assert "借贷平衡" in design.contents[0].text, design

        found = await client.call_tool("search", {"query": "退款"})
        assert len(found.content) == 1 and URI in found.content[0].text, found
        fetched = await client.call_tool("fetch", {"id": URI})
        assert "十四天" in fetched.content[0].text, fetched
        # What is outside the scope is missing like what there never was.
        for missing in ["nowhere://a"] if arguments else ["nowhere://a", "runbook://failover"]:
            try:
                await client.read_resource(missing)
            except Exception as error:
                assert "no server has" in str(error), error
            else:
                raise AssertionError(f"{missing} was read")

        def change() -> None:
            DOCUMENT.write_text(DOCUMENT.read_text() + "又一行。\n")

        async with asyncio.timeout(60):
            if era == "legacy":
                await client.subscribe_resource(URI)
                change()
                assert await pushed.get() == URI
            else:
                async with client.listen(resource_subscriptions=[URI]) as events:
                    change()
                    async for event in events:
                        assert str(event.uri) == URI, event
                        break
    print("ok")


async def completions(client: Client, scoped: bool) -> None:
    """What the template's own server proposes comes through, what was chosen before included."""
    reference = ResourceTemplateReference(uri=DESIGNS)
    for argument, typed, chosen, expected in [
        ("docId", "", {}, ["ledger"] if scoped else ["ledger", "gateway"]),
        ("docId", "le", {}, ["ledger"]),
        ("version", "", {"docId": "ledger"}, ["v3", "2025/rc1"]),
        ("version", "2", {"docId": "ledger"}, ["2025/rc1"]),
        ("version", "", {"docId": "gateway"}, [] if scoped else ["v1"]),
        ("version", "", {"docId": "nothing"}, []),
    ]:
        completed = await client.complete(
            reference, {"name": argument, "value": typed}, context_arguments=chosen
        )
        values = completed.completion.values
        assert values == expected, (argument, typed, chosen, values)


asyncio.run(main(*sys.argv[1:]))
