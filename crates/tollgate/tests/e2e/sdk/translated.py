"""Uses one provider's SDK in front of a backend that speaks another's API: text, streams, a loop of tools, errors.

In: {"base_url", "sdk"}: openai, responses or anthropic. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import anthropic
import openai

given = json.load(sys.stdin)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HEADERS = {"x-workload-app": "open"}
COMMON = {"api_key": "client-key", "default_headers": HEADERS, "max_retries": 0, "timeout": 120}


class OfOpenAi:
    def __init__(self):
        self.chat = openai.OpenAI(base_url=given["base_url"] + "/v1", **COMMON).chat.completions
        self.tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]

    def create(self, messages, **more):
        return self.chat.create(model="m", max_tokens=100, messages=messages, **more)

    def whole(self):
        answer = self.create([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}])
        [choice] = answer.choices
        assert answer.object == "chat.completion" and answer.created > 0, answer
        assert choice.message.content, answer
        assert choice.finish_reason in ("stop", "length"), answer
        assert answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0, answer

    def streamed(self):
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(self.create([{"role": "user", "content": "Hello"}], **asked))
        assert chunks[-1].usage.completion_tokens > 1 and not chunks[-1].choices, chunks[-1]
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        finishes = [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason]
        assert text and len(finishes) == 1, (text, finishes)

    def streamed_without_usage(self):
        chunks = list(self.create([{"role": "user", "content": "Hello"}], stream=True))
        assert all(c.choices and not c.usage for c in chunks), chunks

    def loop_of_tools(self):
        messages = [{"role": "user", "content": "How warm is it in Turin?"}]
        choice = {"type": "function", "function": {"name": "weather"}}
        for _ in range(5):
            answer = self.create(messages, tools=self.tools, tool_choice=choice)
            [choice_made] = answer.choices
            [call] = choice_made.message.tool_calls
            assert choice_made.finish_reason == "tool_calls", answer
            assert isinstance(json.loads(call.function.arguments)["city"], str), call
            messages.append(choice_made.message.model_dump(exclude_none=True, exclude={"refusal"}))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "21"})
        assert self.create(messages, tools=self.tools, tool_choice="none").choices[0].message.content

    def refused(self):
        try:
            self.create([{"role": "user", "content": "Hello"}], n=2)
        except openai.BadRequestError as error:
            assert error.body["code"] == "call_not_translatable" and "n:" in error.body["message"], error
            return
        raise AssertionError("it was let in")


class OfResponses:
    def __init__(self):
        self.responses = openai.OpenAI(base_url=given["base_url"] + "/v1", **COMMON).responses
        self.tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]

    def create(self, items, **more):
        return self.responses.create(model="m", max_output_tokens=100, input=items, **more)

    def whole(self):
        answer = self.create("Hello", instructions="Be short.")
        assert answer.status in ("completed", "incomplete") and answer.output_text, answer
        assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer

    def streamed(self):
        events = list(self.create("Hello", stream=True))
        kinds = [event.type for event in events]
        assert kinds[:2] == ["response.created", "response.in_progress"], kinds
        assert kinds[-1] in ("response.completed", "response.incomplete"), kinds
        assert [event.sequence_number for event in events] == list(range(len(events))), events
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert text and text == events[-1].response.output_text, (text, events[-1])

    def loop_of_tools(self):
        items = [{"role": "user", "content": "How warm is it in Turin?"}]
        choice = {"type": "function", "name": "weather"}
        for _ in range(5):
            answer = self.create(items, tools=self.tools, tool_choice=choice)
            [call] = [item for item in answer.output if item.type == "function_call"]
            assert isinstance(json.loads(call.arguments)["city"], str), call
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": "21"})
        assert self.create(items, tools=self.tools, tool_choice="none").output_text

    def refused(self):
        try:
            self.create("Hello", previous_response_id="resp_1")
        except openai.BadRequestError as error:
            assert error.body["code"] == "call_not_translatable", error
            assert "previous_response_id" in error.body["message"], error
            return
        raise AssertionError("it was let in")


class OfAnthropic:
    def __init__(self):
        self.messages = anthropic.Anthropic(base_url=given["base_url"], **COMMON).messages
        self.tools = [{"name": "weather", "input_schema": SCHEMA}]

    def create(self, messages, **more):
        return self.messages.create(model="m", max_tokens=100, messages=messages, **more)

    def whole(self):
        answer = self.create([{"role": "user", "content": "Hello"}], system="Be short.")
        assert answer.type == "message" and answer.stop_reason in ("end_turn", "max_tokens"), answer
        assert answer.content[-1].text, answer
        assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer

    def streamed(self):
        asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
        with self.messages.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            answer = stream.get_final_message()
        assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
        assert answer.content[-1].text and answer.usage.output_tokens > 1, answer
        assert answer.usage.input_tokens > 0, answer

    def loop_of_tools(self):
        messages = [{"role": "user", "content": "How warm is it in Turin?"}]
        for _ in range(5):
            answer = self.create(messages, tools=self.tools, tool_choice={"type": "any"})
            used = answer.content[-1]
            assert answer.stop_reason == "tool_use" and isinstance(used.input["city"], str), answer
            messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
            result = {"type": "tool_result", "tool_use_id": used.id, "content": "21"}
            messages.append({"role": "user", "content": [result]})
        last = self.create(messages, tools=self.tools, tool_choice={"type": "none"})
        assert last.content[-1].type == "text", last

    def refused(self):
        tool = {"type": "web_search_20250305", "name": "web_search"}
        try:
            self.create([{"role": "user", "content": "Hello"}], tools=[tool])
        except anthropic.BadRequestError as error:
            assert "tools[0].type" in error.body["error"]["message"], error.body
            return
        raise AssertionError("it was let in")


client = {"openai": OfOpenAi, "responses": OfResponses, "anthropic": OfAnthropic}[given["sdk"]]()
shown = [name for name in vars(type(client)) if name not in ("__init__", "create") and not name.startswith("__")]
for name in shown:
    getattr(client, name)()
print(json.dumps(shown))
