"""Uses the SDK through the gate: every dialect, unary and streamed, and errors.

In: {"base_url", "models"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import asyncio
import json
import sys

import openai

given = json.load(sys.stdin)
MODEL = given["models"][0]
HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}


def settings(workload):
    return {
        "base_url": given["base_url"],
        "api_key": "client-key",
        "default_headers": {"x-workload-app": workload},
        "max_retries": 0,
        "timeout": 120,
    }


client = openai.OpenAI(**settings("open"))


def chat(**more):
    return client.chat.completions.create(**{"model": MODEL, "messages": HELLO, **more})


def text_of(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks)


def chat_whole():
    answer = chat()
    usage = answer.usage
    assert answer.choices[0].message.content and answer._request_id
    assert 0 < usage.completion_tokens < usage.total_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def chat_streamed_without_usage_asked():
    for options in ({}, {"stream_options": {"include_usage": False}}, {"stream_options": {}}):
        chunks = list(chat(stream=True, **options))
        assert all(len(c.choices) == 1 for c in chunks), chunks
        assert all(c.usage is None for c in chunks), chunks
        assert text_of(chunks) == chat().choices[0].message.content
        assert chunks[-1].choices[0].finish_reason == "stop"


def chat_streamed_with_usage_asked():
    *chunks, last = chat(stream=True, stream_options={"include_usage": True})
    assert all(len(c.choices) == 1 and c.usage is None for c in chunks), chunks
    assert last.choices == [] and last.usage == chat().usage, last
    assert text_of(chunks) == chat().choices[0].message.content


def chat_cut_by_length():
    answer = chat(max_tokens=3)
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 3


def tool_calls():
    more = {"tools": [TOOL], "tool_choice": "required"}
    [call] = chat(**more).choices[0].message.tool_calls
    assert call.function.name == "weather" and "place" in json.loads(call.function.arguments)
    chunks = list(chat(stream=True, **more))
    assert all(len(c.choices) == 1 for c in chunks)
    pieces = [t.function.arguments or "" for c in chunks for t in c.choices[0].delta.tool_calls or []]
    assert "".join(pieces) == call.function.arguments


def responses():
    answer = client.responses.create(model=MODEL, input="Hello")
    assert answer.status == "completed" and answer.output_text and answer.usage.output_tokens > 0
    events = list(client.responses.create(model=MODEL, input="Hello", stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert "".join(deltas) == answer.output_text == events[-1].response.output_text
    assert events[-1].response.usage == answer.usage


def completions():
    answer = client.completions.create(model=MODEL, prompt="Hello")
    chunks = list(client.completions.create(model=MODEL, prompt="Hello", stream=True))
    assert all(len(c.choices) == 1 and c.usage is None for c in chunks), chunks
    assert "".join(c.choices[0].text for c in chunks) == answer.choices[0].text != ""
    *_, last = client.completions.create(
        model=MODEL, prompt="Hello", stream=True, stream_options={"include_usage": True}
    )
    assert last.choices == [] and last.usage == answer.usage


def embeddings():
    answer = client.embeddings.create(model=MODEL, input=["Hello", "World"])
    assert len(answer.data) == 2 and all(d.embedding for d in answer.data)
    assert answer.usage.total_tokens > 0


def models():
    assert sorted(m.id for m in client.models.list()) == sorted(given["models"])
    assert client.models.retrieve(MODEL).id == MODEL
    caught(openai.NotFoundError, 404, lambda: client.models.retrieve("no-such-model"))


def caught(kind, status, call, code=None):
    try:
        call()
    except openai.APIStatusError as error:
        assert type(error) is kind and error.status_code == status, repr(error)
        assert error.request_id and error.message and error.body, repr(error)
        assert code in (None, error.code), repr(error)
        return error
    raise AssertionError(f"no {kind.__name__}")


def errors():
    caught(openai.NotFoundError, 404, lambda: chat(model="no-such-model"))
    caught(openai.BadRequestError, 400, lambda: chat(max_tokens="many"))
    caught(openai.BadRequestError, 400, lambda: chat(stream="yes"))
    caught(openai.BadRequestError, 400, lambda: chat(messages="Hello"))
    guest = openai.OpenAI(**settings("guest"))
    caught(openai.NotFoundError, 404, lambda: guest.models.list(), "workload_not_registered")
    tight = openai.OpenAI(**settings("tight"))
    ask = lambda: tight.chat.completions.create(model=MODEL, messages=HELLO)  # noqa: E731
    assert ask().choices[0].message.content
    refused = caught(openai.RateLimitError, 429, ask, "rate_limit_exceeded")
    assert int(refused.response.headers["retry-after"]) >= 1


def fifty_at_once():
    asyncio.run(at_once(50))


async def at_once(n):
    async with openai.AsyncOpenAI(**settings("open")) as many:

        async def one(i, stream):
            body = {"model": MODEL, "messages": [{"role": "user", "content": f"Number {i}"}]}
            answer = await many.chat.completions.create(**body, stream=stream)
            if stream:
                return text_of([chunk async for chunk in answer])
            return answer.choices[0].message.content

        whole = await asyncio.gather(*(one(i, False) for i in range(n)))
        streamed = await asyncio.gather(*(one(i, True) for i in range(n)))
    # The engine's text depends on the prompt alone: an answer to another call would differ.
    assert whole == streamed and len(set(whole)) > n // 2


shown = [
    chat_whole,
    chat_streamed_without_usage_asked,
    chat_streamed_with_usage_asked,
    chat_cut_by_length,
    tool_calls,
    responses,
    completions,
    embeddings,
    models,
    errors,
    fifty_at_once,
]
for show in shown:
    show()
print(json.dumps([show.__name__ for show in shown]))
