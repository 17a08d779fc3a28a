"""Starts LangBot in the working folder, adds resdex to it through its API as a person would, and reads
a document: client.py PORT URL, with resdex's token in RESDEX_TOKEN."""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

URI = "notes:///%E9%80%80%E6%AC%BE.md"
PORT, URL = sys.argv[1:]
TOKEN = None


def api(method: str, path: str, body: object = None) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/api/v1/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer = json.load(answer)
    assert answer["code"] == 0, (path, answer)
    return answer["data"]


def until(langbot: subprocess.Popen, what: str, look, failures: tuple) -> object:
    """Looks again and again; its runtimes for plugins and sandboxes are missing, so it starts slowly."""
    deadline = time.monotonic() + 600
    while True:
        assert langbot.poll() is None, "LangBot ended"
        try:
            if seen := look():
                return seen
        except failures as error:
            seen = error
        assert time.monotonic() < deadline, f"not {what}: {seen}"
        time.sleep(0.5)


def use(langbot: subprocess.Popen) -> None:
    global TOKEN
    user = {"user": "bot@example.com", "password": "correct horse 9 Battery"}
    away = (urllib.error.URLError, ConnectionError, TimeoutError)
    until(langbot, "started", lambda: api("GET", "user/init") is not None, away)
    api("POST", "user/init", user)
    TOKEN = api("POST", "user/auth", user)["token"]

    headers = {"Authorization": f"Bearer {os.environ['RESDEX_TOKEN']}"}
    extra = {"url": URL, "headers": headers, "timeout": 60}
    server = {"name": "resdex", "enable": True, "mode": "remote", "extra_args": extra}
    api("POST", "mcp/servers", server)
    # It connects in the background.
    def listed() -> dict | None:
        found = api("GET", "mcp/servers/resdex/resources")
        return found if found["resources"] else None

    found = until(langbot, "connected", listed, away)
    uris = [resource["uri"] for resource in found["resources"]]
    assert URI in uris and "runbook://failover" not in uris, uris
    key = "uriTemplate" if "uriTemplate" in found["resource_templates"][0] else "uri_template"
    templates = [template[key] for template in found["resource_templates"]]
    assert "{+uri}" in templates and "design://docs/{docId}/{+version}" in templates, templates

    # One that is listed, and one that only a template leads to.
    for uri, text in [(URI, "退款需要十四天"), ("design://docs/ledger/v3", "借贷平衡")]:
        read = api("POST", "mcp/servers/resdex/resources/read", {"uri": uri})
        assert text in json.dumps(read, ensure_ascii=False), read


environment = {name: value for name, value in os.environ.items() if "RESDEX" not in name}
with open("langbot.log", "w") as log:
    started = subprocess.Popen(
        [pathlib.Path(sys.executable).parent / "langbot"],
        env=environment
        | {"API__HOST": "127.0.0.1", "API__PORT": PORT, "PIP_NO_INDEX": "1"}
        | {"SPACE__DISABLE_MODELS_SERVICE": "true", "SPACE__DISABLE_TELEMETRY": "true"}
        | {"PYTHONPATH": str(pathlib.Path(__file__).parent)},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
try:
    use(started)
except BaseException:
    print(pathlib.Path("langbot.log").read_text()[-4000:], file=sys.stderr)
    raise
finally:
    started.kill()
    started.wait()
print("ok")
