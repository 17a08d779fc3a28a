"""A server on the Python SDK, as its guide teaches. It pushes in the modern era only."""

import asyncio
import base64
import sys
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parent.parent))
from notes import PORT, control, find, notes

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated
from mcp_types import Completion, Resource

DESIGNS = {
    "checkout": {
        "v1": "# 结账流程设计\n\n购物车提交之后,系统先锁定库存,再创建订单。锁定十五分钟内未付款则自动释放。\n",
        "v2/draft": "# 结账流程设计(草案)\n\n新版把优惠券核销移到支付回调之后,避免重复扣减。\n",
    },
    "权限": {
        "v1": "# 权限模型\n\n角色由租户管理员授予,继承关系不超过三层。审计日志保留两年。\n",
    },
}

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Server(MCPServer):
    """Adds the notes to what the decorators below declare."""

    async def list_resources(self):
        listed = [
            Resource(uri=n["uri"], name=n["title"], title=n["title"], mime_type="text/markdown")
            for n in notes()
        ]
        return await super().list_resources() + listed

    async def read_resource(self, uri, context=None):
        if note := find(str(uri)):
            return [ReadResourceContents(content=note["text"], mime_type="text/markdown")]
        return await super().read_resource(uri, context)


bus = InMemorySubscriptionBus()
mcp = Server("python-mcp", subscriptions=bus, log_level="WARNING")


@mcp.resource("guide://onboarding", title="Onboarding guide", mime_type="text/markdown")
def onboarding() -> str:
    return "# Onboarding\n\nAsk the quartermaster for a badge and a laptop on the first morning.\n"


@mcp.resource("config://limits", title="Service limits", mime_type="application/json")
def limits() -> dict:
    return {"uploads": {"max_megabytes": 250, "burst_policy": "leaky bucket"}, "region": "Ljubljana"}


@mcp.resource(
    "images://floorplan",
    name="floorplan",
    title="Floorplan of the Reykjavik office",
    mime_type="image/png",
)
def floorplan() -> bytes:
    return PIXEL


@mcp.resource("design://docs/{docId}/{+version}", title="设计文档", mime_type="text/markdown")
def design(docId: str, version: str) -> str:
    try:
        return DESIGNS[docId][version]
    except KeyError:
        raise ResourceNotFoundError(f"no design {docId} {version}") from None


@mcp.completion()
async def complete(ref, argument, context):
    match argument.name:
        case "docId":
            values = list(DESIGNS)
        case "version":
            # Depends on what was chosen before, as a client can tell the server.
            chosen = (context.arguments or {}).get("docId") if context else None
            values = list(DESIGNS.get(unquote(chosen or ""), {}))
        case _:
            return None
    return Completion(values=[value for value in values if value.startswith(argument.value)])


async def push(command: str, argument: str) -> None:
    await bus.publish(ResourceUpdated(argument) if command == "updated" else ResourcesListChanged())


async def main() -> None:
    async with await control(push):
        if PORT is None:
            await mcp.run_stdio_async()
        else:
            await mcp.run_streamable_http_async(port=PORT)


asyncio.run(main())
