"""Uses SDKs, one after the other, in front of a fake backend that answers in its own form: text, an image, a stream, a loop of tools, the same streamed, an error.

In: {"base_url", "sdks", "image"}, the image in base64. Prints for each the names of the checks that passed; an unexpected result ends the script.
"""

import base64
import json
import sys

import anthropic
import google.oauth2.credentials
import openai
from google import genai
from google.genai import errors, types

given = json.load(sys.stdin)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HEADERS = {"x-workload-app": "w"}
COMMON = {"api_key": "client-key", "default_headers": HEADERS, "max_retries": 0, "timeout": 120}
ASKS, GAVE = "How warm is it in Turin?", "21 degrees"
IMAGE = f"data:image/png;base64,{given['image']}"


def is_usage(asked, made):
    assert (asked, made) == (12, 3), (asked, made)


def is_call(name, arguments):
    assert name == "weather" and arguments == {"city": "Turin"}, (name, arguments)


class OfOpenAi:
    def __init__(self):
        self.chat = openai.OpenAI(base_url=given["base_url"] + "/v1", **COMMON).chat.completions
        self.given = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]

    def ask(self, messages, **more):
        return self.chat.create(model="m", max_tokens=100, messages=messages, **more)

    def text(self):
        told = self.ask([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}])
        assert told.choices[0].message.content == "Hello." and told.choices[0].finish_reason == "stop", told
        is_usage(told.usage.prompt_tokens, told.usage.completion_tokens)

    def image(self):
        shown = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": IMAGE}}]
        assert self.ask([{"role": "user", "content": shown}]).choices[0].message.content == "Hello."

    def stream(self):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(self.ask([{"role": "user", "content": "Hello"}], **options))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello.", chunks
        is_usage(chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens)

    def tools(self):
        told = self.ask([{"role": "user", "content": ASKS}], tools=self.given)
        [call] = told.choices[0].message.tool_calls
        assert told.choices[0].finish_reason == "tool_calls", told
        is_call(call.function.name, json.loads(call.function.arguments))
        messages = [{"role": "user", "content": ASKS}]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call.model_dump(exclude_none=True)]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": GAVE})
        assert self.ask(messages, tools=self.given).choices[0].message.content == "Hello."

    def streamed_tools(self):
        chunks = list(self.ask([{"role": "user", "content": ASKS}], tools=self.given, stream=True))
        deltas = [d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or []]
        text = "".join(d.function.arguments or "" for d in deltas)
        is_call(deltas[0].function.name, json.loads(text))
        assert deltas[0].id

    def error(self):
        try:
            self.ask([{"role": "user", "content": "FAIL"}])
        except openai.RateLimitError as error:
            assert error.body["message"] == "slow down", error.body
            return
        raise AssertionError("no error")


class OfResponses:
    def __init__(self):
        self.responses = openai.OpenAI(base_url=given["base_url"] + "/v1", **COMMON).responses
        self.given = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]

    def ask(self, items, **more):
        return self.responses.create(model="m", max_output_tokens=100, input=items, **more)

    def text(self):
        told = self.ask("Hello", instructions="Be short.")
        assert told.status == "completed" and told.output_text == "Hello.", told
        is_usage(told.usage.input_tokens, told.usage.output_tokens)

    def image(self):
        shown = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": IMAGE, "detail": "auto"}]
        assert self.ask([{"role": "user", "content": shown}]).output_text == "Hello."

    def stream(self):
        events = list(self.ask("Hello", stream=True))
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Hello.", events
        usage = events[-1].response.usage
        is_usage(usage.input_tokens, usage.output_tokens)

    def looped(self, told):
        [call] = [item for item in told.output if item.type == "function_call"]
        is_call(call.name, json.loads(call.arguments))
        return call

    def tools(self):
        told = self.ask([{"role": "user", "content": ASKS}], tools=self.given)
        call = self.looped(told)
        items = [{"role": "user", "content": ASKS}] + [item.model_dump(exclude_none=True) for item in told.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": GAVE})
        assert self.ask(items, tools=self.given).output_text == "Hello."

    def streamed_tools(self):
        events = list(self.ask([{"role": "user", "content": ASKS}], tools=self.given, stream=True))
        self.looped(events[-1].response)

    def error(self):
        try:
            self.ask("FAIL")
        except openai.RateLimitError as error:
            assert error.body["message"] == "slow down", error.body
            return
        raise AssertionError("no error")


class OfAnthropic:
    def __init__(self):
        self.messages = anthropic.Anthropic(base_url=given["base_url"], **COMMON).messages
        self.given = [{"name": "weather", "input_schema": SCHEMA}]

    def ask(self, messages, **more):
        return self.messages.create(model="m", max_tokens=100, messages=messages, **more)

    def text(self):
        told = self.ask([{"role": "user", "content": "Hello"}], system="Be short.")
        assert told.content[-1].text == "Hello." and told.stop_reason == "end_turn", told
        # The fake of Amazon gives its whole answers no id.
        assert told.id.startswith("msg_") or not told.id, told
        assert told._request_id, told
        is_usage(told.usage.input_tokens, told.usage.output_tokens)

    def image(self):
        source = {"type": "base64", "media_type": "image/png", "data": given["image"]}
        shown = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}]
        assert self.ask([{"role": "user", "content": shown}]).content[-1].text == "Hello."

    def stream(self):
        with self.messages.stream(model="m", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]) as stream:
            told = stream.get_final_message()
        assert told.content[-1].text == "Hello.", told
        is_usage(told.usage.input_tokens, told.usage.output_tokens)

    def looped(self, told):
        used = told.content[-1]
        assert told.stop_reason == "tool_use", told
        is_call(used.name, used.input)
        return used

    def tools(self):
        told = self.ask([{"role": "user", "content": ASKS}], tools=self.given)
        used = self.looped(told)
        messages = [{"role": "user", "content": ASKS}]
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in told.content]})
        result = {"type": "tool_result", "tool_use_id": used.id, "content": GAVE}
        messages.append({"role": "user", "content": [result]})
        assert self.ask(messages, tools=self.given).content[-1].text == "Hello."

    def streamed_tools(self):
        asked = {"messages": [{"role": "user", "content": ASKS}], "tools": self.given}
        with self.messages.stream(model="m", max_tokens=100, **asked) as stream:
            self.looped(stream.get_final_message())

    def error(self):
        try:
            self.ask([{"role": "user", "content": "FAIL"}])
        except anthropic.RateLimitError as error:
            assert error.body["error"] == {"type": "rate_limit_error", "message": "slow down"}, error.body
            return
        raise AssertionError("no error")


class OfGoogle:
    OPTIONS = {"api_key": "client-key"}

    def __init__(self):
        http = types.HttpOptions(base_url=given["base_url"], headers=HEADERS)
        # Without it the models close what they ask with.
        self.client = genai.Client(http_options=http, **self.OPTIONS)
        self.models = self.client.models
        declared = {"name": "weather", "description": "How warm it is.", "parameters_json_schema": SCHEMA}
        self.given = [types.Tool(function_declarations=[declared])]

    def ask(self, contents, **config):
        return self.models.generate_content(model="m", contents=contents, config=self.config(**config))

    def config(self, **config):
        off = types.AutomaticFunctionCallingConfig(disable=True)
        return types.GenerateContentConfig(max_output_tokens=100, automatic_function_calling=off, **config)

    def text(self):
        told = self.ask("Hello", system_instruction="Be short.")
        assert told.text == "Hello.", told
        is_usage(told.usage_metadata.prompt_token_count, told.usage_metadata.candidates_token_count)

    def image(self):
        shown = types.Part.from_bytes(data=base64.b64decode(given["image"]), mime_type="image/png")
        assert self.ask(["What is it?", shown]).text == "Hello."

    def stream(self):
        chunks = list(self.models.generate_content_stream(model="m", contents="Hello", config=self.config()))
        assert "".join(chunk.text or "" for chunk in chunks) == "Hello.", chunks
        usage = chunks[-1].usage_metadata
        is_usage(usage.prompt_token_count, usage.candidates_token_count)

    def tools(self):
        told = self.ask(ASKS, tools=self.given)
        [call] = told.function_calls
        is_call(call.name, call.args)
        gave = types.FunctionResponse(name="weather", id=call.id, response={"output": GAVE})
        history = [
            types.Content(role="user", parts=[types.Part(text=ASKS)]),
            told.candidates[0].content,
            types.Content(role="user", parts=[types.Part(function_response=gave)]),
        ]
        assert self.ask(history, tools=self.given).text == "Hello."

    def streamed_tools(self):
        asked = {"model": "m", "contents": ASKS, "config": self.config(tools=self.given)}
        calls = [call for chunk in self.models.generate_content_stream(**asked) for call in chunk.function_calls or []]
        [call] = calls
        is_call(call.name, call.args)

    def error(self):
        try:
            self.ask("FAIL")
        except errors.ClientError as error:
            assert (error.code, error.status, error.message) == (429, "RESOURCE_EXHAUSTED", "slow down"), error
            return
        raise AssertionError("no error")


class OfVertex(OfGoogle):
    OPTIONS = {
        "vertexai": True,
        "project": "theirs",
        "location": "there",
        "credentials": google.oauth2.credentials.Credentials("client-key"),
    }


kinds = {"openai": OfOpenAi, "responses": OfResponses, "anthropic": OfAnthropic, "gemini": OfGoogle, "vertex": OfVertex}
shown = {}
for sdk in given["sdks"]:
    client = kinds[sdk]()
    shown[sdk] = []
    for name in ["text", "image", "stream", "tools", "streamed_tools", "error"]:
        getattr(client, name)()
        shown[sdk].append(name)
print(json.dumps(shown))
