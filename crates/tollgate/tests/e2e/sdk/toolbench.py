"""Replays ToolBench answer files: each recorded decision is asked for anew, streaming.

In: {"base_url", "files": [path]}. Every element k of `train_messages` is the history up to the
assistant's decision k; what is sent is the history before that decision, in today's words: the old
`function` role, `function_call` and `functions` become `tool`, `tool_calls` with ids, and `tools`.
Prints one answer for each. Anything that goes wrong ends the script.
"""

import json
import os
import sys

import openai

NOT_JSON_SCHEMA = ("optional", "example_value")


def tools(functions):
    return [{"type": "function", "function": standard(f)} for f in functions]


def standard(function):
    """Without the keys that are ToolBench's own; a parameter may be named like one of them."""
    schema = function["parameters"]
    properties = {
        name: {k: v for k, v in p.items() if k not in NOT_JSON_SCHEMA}
        for name, p in schema.get("properties", {}).items()
    }
    kept = {k: v for k, v in schema.items() if k not in NOT_JSON_SCHEMA}
    return {**function, "parameters": {**kept, "properties": properties}}


def messages(old, name):
    new, calls = [], []
    for turn, message in enumerate(old):
        role, content = message["role"], message.get("content")
        if role == "function":
            call, called = calls.pop(0)
            assert called == message["name"], (name, turn)
            new.append({"role": "tool", "tool_call_id": call, "content": content or ""})
        elif call := message.get("function_call"):
            assert role == "assistant" and not calls, (name, turn)
            calls = [(f"call_{name}_{turn}", call["name"])]
            function = {"name": call["name"], "arguments": call["arguments"]}
            calling = [{"id": calls[0][0], "type": "function", "function": function}]
            new.append({"role": role, "content": content, "tool_calls": calling})
        else:
            new.append({"role": role, "content": content or ""})
    assert not calls, f"{name}: a call without its result"
    return new


def ask(client, answer, name, k):
    *history, decision = answer["train_messages"][k]
    assert decision["role"] == "assistant", (name, k)
    create = client.chat.completions.with_raw_response.create
    raw = create(
        model="gpt-oss-120b",
        messages=messages(history, name),
        tools=tools(answer["function"]),
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = raw.parse()
    assert all(len(c.choices) == 1 and c.usage is None for c in chunks), (name, k)
    assert chunks[-1].choices[0].finish_reason and last.choices == [], (name, k)
    return {
        "file": name,
        "prefix": k,
        "status": raw.status_code,
        "request_id": raw.headers["x-request-id"],
        "text": "".join(c.choices[0].delta.content or "" for c in chunks),
        "prompt_tokens": last.usage.prompt_tokens,
        "completion_tokens": last.usage.completion_tokens,
    }


def main():
    given = json.load(sys.stdin)
    client = openai.OpenAI(
        base_url=given["base_url"],
        api_key="client-key",
        default_headers={"x-workload-app": "toolbench-agent"},
        max_retries=0,
        timeout=120,
    )
    answers = []
    for path in given["files"]:
        with open(path, encoding="utf-8") as file:
            answer = json.load(file)["answer_generation"]
        name = os.path.splitext(os.path.basename(path))[0]
        if answer["valid_data"]:
            answers += [ask(client, answer, name, k) for k in range(len(answer["train_messages"]))]
    print(json.dumps(answers))


main()
