"""A server of tools over its standard input and output, as small as it can be."""

import json
import os
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(of):
    return {"content": [{"type": "text", "text": of}]}


def called(params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "process":
        return text(str(os.getpid()))
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    if name == "echo":
        return text(arguments["text"])
    if name == "progress":
        token = params["_meta"]["progressToken"]
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        return text("done")
    if name == "ask":
        say({"id": 1, "method": "elicitation/create", "params": {"message": "Which?"}})
        return text(json.loads(sys.stdin.readline())["result"]["action"])
    if name == "flood":
        sys.stdout.write("x" * (20 << 20))
        sys.stdout.flush()
        sys.stdin.read()
    sys.exit(7)


NAMES = ["process", "environment", "echo", "progress", "ask", "flood", "die"]
print("it begins", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        offered = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}
        say({"id": asked["id"], "result": offered})
    elif method == "tools/list":
        say({"method": "notifications/message", "params": {"data": "listed"}})
        say({"id": asked["id"], "result": {"tools": [{"name": name, "inputSchema": {}} for name in NAMES]}})
    elif method == "tools/call":
        say({"id": asked["id"], "result": called(asked["params"])})
