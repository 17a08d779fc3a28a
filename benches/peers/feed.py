"""An MCP server of notes on stdio, which change when a datagram `NUMBER TEXT` comes to the socket that
is its argument."""

import json
import os
import socket
import sys
import threading

from notes import NOTES, note

texts = {number: note(number, "nothing") for number in range(NOTES)}
lock = threading.Lock()


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def uri(number):
    return f"feed:///{number}"


def follow(path):
    if os.path.exists(path):
        os.unlink(path)
    changes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    changes.bind(path)
    while True:
        number, text = changes.recv(65_536).decode().split(" ", 1)
        texts[int(number)] = text
        send({"method": "notifications/resources/updated", "params": {"uri": uri(number)}})


def result(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"resources": {"subscribe": True}},
            "serverInfo": {"name": "feed", "version": "1"},
        }
    if method == "resources/list":
        return {"resources": [{"uri": uri(n), "name": f"note {n}"} for n in texts]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        number = int(params["uri"].rsplit("/", 1)[1])
        return {"contents": [{"uri": uri(number), "mimeType": "text/plain", "text": texts[number]}]}
    if method in ("ping", "resources/subscribe", "resources/unsubscribe"):
        return {}
    return None


threading.Thread(target=follow, args=sys.argv[1:], daemon=True).start()
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = result(request["method"], request.get("params") or {})
    if answer is None:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        send({"id": request["id"], "result": answer})
