"""Uses the Anthropic SDK through the gate: messages, unary and streamed, tools, and errors.

In: {"base_url"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import anthropic

given = json.load(sys.stdin)
HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {
    "name": "weather",
    "description": "The weather of a place",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def client(workload):
    return anthropic.Anthropic(
        base_url=given["base_url"],
        api_key="client-key",
        default_headers={"x-workload-app": workload},
        max_retries=0,
        timeout=120,
    )


def create(workload="open", **more):
    return client(workload).messages.create(
        model="claude-of-ours", max_tokens=100, messages=HELLO, **more
    )


def failing(workload):
    try:
        create(workload)
    except anthropic.APIStatusError as error:
        return error
    raise AssertionError("it was let in")


def whole():
    answer = create()
    assert answer.role == "assistant" and answer.stop_reason in ("end_turn", "max_tokens"), answer
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer
    assert answer.content[-1].type in ("text", "thinking"), answer


def streamed():
    with client("open").messages.stream(
        model="claude-of-ours", max_tokens=100, messages=HELLO
    ) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_message()
    assert {"message_start", "content_block_delta", "message_delta", "message_stop"} <= kinds, kinds
    assert answer.usage.output_tokens > 1, answer


def tool():
    answer = create(tools=[TOOL], tool_choice={"type": "tool", "name": "weather"})
    used = answer.content[-1]
    assert used.type == "tool_use" and isinstance(used.input["city"], str), answer


def limited():
    error = failing("tight")
    assert isinstance(error, anthropic.RateLimitError), error
    assert error.body["type"] == "error", error.body
    assert error.body["error"]["type"] == "rate_limit_error", error.body
    assert error.body["error"]["code"] == "request_exceeds_limit", error.body


def unknown():
    error = failing("nobody")
    assert isinstance(error, anthropic.NotFoundError), error
    assert error.body["error"]["type"] == "not_found_error", error.body


def models():
    ours = client("named").models
    assert [model.id for model in ours.list()] == ["claude-of-ours", "small"]
    one = ours.retrieve("claude-of-ours")
    assert (one.type, one.id, one.display_name) == ("model", "claude-of-ours", "claude-of-ours"), one
    assert one.created_at.year == 1970, one
    try:
        ours.retrieve("other")
    except anthropic.NotFoundError as error:
        assert error.body["type"] == "error", error.body
        assert error.body["error"]["type"] == "not_found_error", error.body
    else:
        raise AssertionError("it is there")


shown = []
for show in (whole, streamed, tool, limited, unknown, models):
    show()
    shown.append(show.__name__)
print(json.dumps(shown))
