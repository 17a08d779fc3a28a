"""A server on fastmcp: 500 articles in pages of 50, and notes. It pushes list changes in the legacy era only."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from notes import PORT, control, notes

from fastmcp import FastMCP
from fastmcp.resources import TextResource
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers import Provider

ARTICLES = 500


class Notes(Provider):
    async def _list_resources(self):
        return [
            TextResource(uri=n["uri"], name=n["title"], title=n["title"], text=n["text"], mime_type="text/markdown")
            for n in notes()
        ]


class Sessions(Middleware):
    """Remembers who has listed, to tell them of changes: the framework has no broadcast of its own."""

    def __init__(self):
        self.listening = {}

    async def on_list_resources(self, context, call_next):
        session = context.fastmcp_context
        self.listening[session.session_id] = session.session
        return await call_next(context)


sessions = Sessions()
mcp = FastMCP("fastmcp", list_page_size=50, providers=[Notes()], middleware=[sessions])

for number in range(1, ARTICLES + 1):
    mcp.add_resource(
        TextResource(
            uri=f"kb://articles/{number:03}",
            name=f"article-{number:03}",
            title=f"Knowledge base article {number}",
            mime_type="text/plain",
            text=f"Article number {number}. The part in question is called gasket{number:03}, kept on shelf {number % 17}.",
        )
    )


async def push(command: str, argument: str) -> None:
    assert command == "list_changed", f"fastmcp has no push of {command}"
    for session in list(sessions.listening.values()):
        await session.send_resource_list_changed()


async def main() -> None:
    async with await control(push):
        if PORT is None:
            await mcp.run_stdio_async(show_banner=False, log_level="WARNING")
        else:
            await mcp.run_http_async(show_banner=False, host="127.0.0.1", port=PORT, log_level="WARNING")


asyncio.run(main())
