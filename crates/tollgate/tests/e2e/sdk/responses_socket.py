"""Calls of OpenAI's SDK over a WebSocket of the Responses API; the backend has chat completions alone.

In: {"base_url", "workload"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import openai
import websockets.sync.client
from websockets.exceptions import InvalidStatus

given = json.load(sys.stdin)
address = given["base_url"] + "/v1"
socket = "ws" + address.removeprefix("http")
shown = []


def client_of(workload):
    return openai.OpenAI(
        base_url=address,
        websocket_base_url=socket,
        api_key="client-key",
        default_headers={"x-workload-app": workload},
        max_retries=0,
        timeout=120,
    ).responses


def told(connection, **call):
    """All events of one call, to its last."""
    connection.send({"type": "response.create", "model": "m", "max_output_tokens": 30, **call})
    events = []
    for event in connection:
        events.append(event)
        if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
            return events


with client_of("open").connect() as connection:
    events = told(connection, input="My name is Ada.")
    first = events[-1].response
    assert events[0].type == "response.created", events
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text and text == first.output_text, (text, first)
    shown.append("streamed")

    second = told(connection, input="What is my name?", previous_response_id=first.id, store=False)[-1].response
    spent = first.usage.input_tokens + first.usage.output_tokens
    assert second.usage.input_tokens > spent, (first, second)
    third = told(connection, input="And again?", previous_response_id=second.id, store=False)[-1].response
    spent = second.usage.input_tokens + second.usage.output_tokens
    assert third.usage.input_tokens > spent, (second, third)
    shown.append("goes_on")

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"type": "function", "name": "weather", "parameters": schema}
    asked = {"input": "How warm is it in Turin?", "tools": [tool], "tool_choice": "required", "max_output_tokens": 300}
    called = told(connection, **asked)[-1].response
    [call] = [item for item in called.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
    answer = told(connection, input=[output], tools=[tool], tool_choice="none", previous_response_id=called.id)
    assert answer[-1].response.output_text, answer[-1]
    shown.append("loop_of_tools")

    [refused] = told(connection, input="a", previous_response_id="resp_of_nobody")
    assert refused.type == "error" and refused.status == 400, refused
    connection.send({"type": "response.steer", "input": "b"})
    refused = connection.recv()
    assert refused.type == "error" and "response.steer" in refused.error.message, refused
    assert told(connection, input="still here")[-1].response.output_text
    shown.append("errors")

with client_of("tight").connect() as connection:
    kinds = [told(connection, input="a")[-1] for _ in range(3)]
    assert kinds[0].type != "error", kinds
    limited = kinds[-1]
    assert limited.type == "error" and limited.status == 429, limited
    assert limited.error.code == "rate_limit_exceeded", limited
    shown.append("limited")

try:
    with client_of("nobody").connect():
        raise AssertionError("nobody is let in")
except InvalidStatus as error:
    assert error.response.status_code in (401, 403, 404), error.response
    shown.append("unknown")

with websockets.sync.client.connect(socket + "/responses", additional_headers={"x-workload-app": "open"}) as plain:
    assert plain.ping("there?").wait(30)
    plain.send(b"no text")
    try:
        plain.recv(30)
    except websockets.exceptions.ConnectionClosed as closed:
        assert closed.rcvd.code == 1003, closed
    shown.append("closed")

print(json.dumps(shown))
