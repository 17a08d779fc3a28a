"""What the small Python servers share: notes in a file, and pushes on command.

A server's notes stand in FOLDER/notes.json, `[{"uri", "title", "text"}]`, which is read again at
each request, so a test changes them by writing the file. Those at `notes://` are listed, another
one replaces the text of a template's URI. Nothing is pushed by that. A push is asked
for on the socket FOLDER/control.sock, one line each, answered with `ok` when it has been sent:
`updated URI` or `list_changed`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

FOLDER = Path(sys.argv[1])
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else None
"""Streamable HTTP on this port of the loopback address, instead of stdio."""


def written() -> list[dict[str, str]]:
    return json.loads((FOLDER / "notes.json").read_text(encoding="utf-8"))


def notes() -> list[dict[str, str]]:
    return [note for note in written() if note["uri"].startswith("notes://")]


def find(uri: str) -> dict[str, str] | None:
    return next((note for note in written() if note["uri"] == uri), None)


async def control(push: Callable[[str, str], Awaitable[None]]) -> asyncio.Server:
    """Answers the control socket; `push` is called with the command and what follows it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            command, _, argument = line.decode().strip().partition(" ")
            await push(command, argument)
            writer.write(b"ok\n")
            await writer.drain()
        writer.close()

    # The last to start takes the path over, whole at once: a client may start a server twice.
    own = FOLDER / f"control.{os.getpid()}"
    server = await asyncio.start_unix_server(serve, own)
    own.rename(FOLDER / "control.sock")
    return server
