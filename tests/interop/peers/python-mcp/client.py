"""Uses resdex as an MCP server, as a client written with the Python SDK would, in one era.

client.py ERA COMMAND ARGUMENT…: prints `ok`, or fails with what is wrong.
"""

import asyncio
import os
import pathlib
import sys
import warnings

from mcp import Client, StdioServerParameters

warnings.simplefilter("ignore")
DOCUMENT, URI = pathlib.Path("notes/退款.md"), "notes:///%E9%80%80%E6%AC%BE.md"


async def main(era: str, command: str, *arguments: str) -> None:
    pushed: asyncio.Queue[str] = asyncio.Queue()

    async def told(message: object) -> None:
        uri = getattr(getattr(message, "params", None), "uri", None)
        if uri is not None:
            await pushed.put(str(uri))

    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server, mode=era, message_handler=told, read_timeout_seconds=30) as client:
        listed = await client.list_resources()
        assert URI in [str(resource.uri) for resource in listed.resources], listed
        templates = await client.list_resource_templates()
        assert "{+uri}" in [template.uri_template for template in templates.resource_templates]
        read = await client.read_resource(URI)
        assert read.contents[0].text == DOCUMENT.read_text(), read
        found = await client.call_tool("search", {"query": "退款"})
        assert len(found.content) == 1 and URI in found.content[0].text, found
        fetched = await client.call_tool("fetch", {"id": URI})
        assert "十四天" in fetched.content[0].text, fetched
        try:
            await client.read_resource("notes:///missing.md")
        except Exception as error:
            assert URI not in str(error) or "nearest" in str(error), error
        else:
            raise AssertionError("what isn't there was read")

        def change() -> None:
            DOCUMENT.write_text(DOCUMENT.read_text() + "又一行。\n")

        async with asyncio.timeout(30):
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


asyncio.run(main(*sys.argv[1:]))
