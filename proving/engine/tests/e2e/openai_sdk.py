"""The OpenAI SDK for Python against the engine itself. An unexpected result ends the script."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="sk-engine", max_retries=0)
[model] = [m.id for m in client.models.list()]
ask = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}

whole = client.chat.completions.create(**ask)
message = whole.choices[0].message
assert message.content and message.reasoning_content, message
chunks = list(
    client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True})
)
assert chunks[-1].usage == whole.usage and chunks[-1].choices == []
said = [c.choices[0].delta for c in chunks[:-1]]
assert "".join(d.content or "" for d in said) == message.content
assert "".join(getattr(d, "reasoning_content", None) or "" for d in said) == message.reasoning_content

several = client.chat.completions.create(**ask, n=3, logprobs=True, top_logprobs=2)
assert len(several.choices) == 3
for choice in several.choices:
    assert "".join(t.token for t in choice.logprobs.content) == choice.message.content

tool = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}
called = client.chat.completions.create(**ask, tools=[tool], tool_choice="required")
[call] = called.choices[0].message.tool_calls
assert call.function.name == "weather" and called.choices[0].finish_reason == "tool_calls"
history = ask["messages"] + [
    {"role": "assistant", "tool_calls": [call.model_dump()]},
    {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
]
answer = client.chat.completions.create(model=model, messages=history, tools=[tool])
assert answer.usage.prompt_tokens > called.usage.prompt_tokens

response = client.responses.create(model=model, input="Hello", reasoning={"effort": "high"})
assert response.output_text and response.usage.output_tokens_details.reasoning_tokens > 0
events = list(client.responses.create(model=model, input="Hello", stream=True))
assert events[-1].type == "response.completed"
deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
assert "".join(deltas) == events[-1].response.output_text

plain = client.completions.create(model=model, prompt=["One", "Two"], max_tokens=5)
assert [c.finish_reason for c in plain.choices] == ["length", "length"]
assert plain.usage.completion_tokens == 10
assert len(client.embeddings.create(model=model, input=["a", "b"]).data) == 2

for wrong, kind in [
    ({"model": "nobody"}, openai.NotFoundError),
    ({"max_tokens": 0}, openai.BadRequestError),
    ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, openai.BadRequestError),
]:
    try:
        client.chat.completions.create(**{**ask, **wrong})
    except openai.APIStatusError as error:
        assert type(error) is kind and error.body["code"] == error.status_code, repr(error)
    else:
        raise AssertionError(wrong)
try:
    client.chat.completions.create(**ask, extra_headers={"x-fault": "status=429,retry-after=1"})
except openai.RateLimitError as error:
    assert error.response.headers["retry-after"] == "1"
else:
    raise AssertionError("no fault")
print("all well")
