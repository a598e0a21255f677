"""Makes chat calls one after another and prints the outcome of each in the SDK.

In: {"base_url", "retries", "calls": [{"headers", "query", "api_key", "body"}]}; a header of null is omitted.
Only an answer with an error status is an outcome; any other failure ends the script.
"""

import json
import sys

import openai


def client(given, call):
    return openai.OpenAI(
        base_url=given["base_url"],
        api_key=call.get("api_key", "client-key"),
        default_query=call.get("query") or None,
        max_retries=given.get("retries", 0),
        timeout=120,
    )


def whole(answer):
    [choice] = answer.choices
    return {"model": answer.model, "text": choice.message.content, "finish": choice.finish_reason}


def streamed(stream):
    chunks = list(stream)
    parts = [c.choices[0].delta.content or "" for c in chunks]
    finishes = [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason]
    [model] = {c.model for c in chunks}
    [finish] = finishes
    return {"model": model, "text": "".join(parts), "finish": finish, "chunks": len(chunks)}


def outcome(given, call):
    create = client(given, call).chat.completions.with_raw_response.create
    headers = {k: openai.Omit() if v is None else v for k, v in call["headers"].items()}
    try:
        raw = create(**call["body"], extra_headers=headers)
    except openai.APIStatusError as error:
        return {
            "error": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "request_id": error.request_id,
            "headers": dict(error.response.headers),
        }
    read = streamed if call["body"].get("stream") else whole
    return {
        "error": None,
        "status": raw.status_code,
        "headers": dict(raw.headers),
        "request_id": raw.headers["x-request-id"],
        **read(raw.parse()),
    }


given = json.load(sys.stdin)
print(json.dumps([outcome(given, call) for call in given["calls"]]))
