"""Uses the SDKs of Cohere and AWS straight at the fakes of their services: what the fakes answer is what these SDKs understand.

In: {"cohere", "bedrock", "image"}, addresses, and an image in base64. Prints for each the names of the checks that passed; an unexpected
result ends the script.
"""

import base64
import json
import sys

import boto3
import botocore.config
import botocore.exceptions
import cohere
import cohere.errors

given = json.load(sys.stdin)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKS, GAVE = "How warm is it in Turin?", "21 degrees"


def is_call(name, arguments):
    assert name == "weather" and arguments == {"city": "Turin"}, (name, arguments)


class OfCohere:
    def __init__(self):
        self.sdk = cohere.ClientV2(api_key="its-key", base_url=given["cohere"])
        self.given = {"tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]}

    def ask(self, messages, **more):
        return self.sdk.chat(model="its-m", messages=messages, request_options={"max_retries": 0}, **more)

    def stream_of(self, content, **more):
        return list(self.sdk.chat_stream(model="its-m", messages=[{"role": "user", "content": content}], **more))

    def is_usage(self, usage):
        assert (usage.tokens.input_tokens, usage.tokens.output_tokens) == (12, 3), usage

    def text(self):
        told = self.ask([{"role": "user", "content": "Hello"}])
        assert told.message.content[0].text == "Hello." and told.finish_reason == "COMPLETE", told
        self.is_usage(told.usage)

    def image(self):
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{given['image']}"}}
        told = self.ask([{"role": "user", "content": [{"type": "text", "text": "What?"}, image]}])
        assert told.message.content[0].text == "Hello.", told

    def stream(self):
        events = self.stream_of("Hello")
        assert "".join(e.delta.message.content.text for e in events if e.type == "content-delta") == "Hello.", events
        self.is_usage(events[-1].delta.usage)

    def tools(self):
        told = self.ask([{"role": "user", "content": ASKS}], **self.given)
        [call] = told.message.tool_calls
        assert told.finish_reason == "TOOL_CALL", told
        is_call(call.function.name, json.loads(call.function.arguments))
        said = {"role": "assistant", "tool_calls": [call.model_dump(exclude_none=True)]}
        gave = {"role": "tool", "tool_call_id": call.id, "content": GAVE}
        then = self.ask([{"role": "user", "content": ASKS}, said, gave], **self.given)
        assert then.message.content[0].text == "Hello.", then

    def streamed_tools(self):
        events = self.stream_of(ASKS, **self.given)
        [call] = [e.delta.message.tool_calls for e in events if e.type == "tool-call-start"]
        is_call(call.function.name, json.loads(call.function.arguments))
        assert events[-1].delta.finish_reason == "TOOL_CALL", events

    def error(self):
        try:
            self.ask([{"role": "user", "content": "FAIL"}])
        except cohere.errors.TooManyRequestsError as error:
            assert error.body == {"message": "slow down"}, error.body
            return
        raise AssertionError("no error")


class OfBedrock:
    def __init__(self):
        config = botocore.config.Config(retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-west-2"}
        self.sdk = boto3.client("bedrock-runtime", endpoint_url=given["bedrock"], config=config, **keys)
        spec = {"name": "weather", "inputSchema": {"json": SCHEMA}}
        self.given = {"toolConfig": {"tools": [{"toolSpec": spec}]}}

    def ask(self, content, **more):
        messages = [{"role": "user", "content": content}]
        return self.sdk.converse(modelId="its-m", messages=messages, **more)

    def stream_of(self, text, **more):
        messages = [{"role": "user", "content": [{"text": text}]}]
        return list(self.sdk.converse_stream(modelId="its-m", messages=messages, **more)["stream"])

    def is_usage(self, usage):
        assert (usage["inputTokens"], usage["outputTokens"]) == (12, 3), usage

    def text(self):
        told = self.ask([{"text": "Hello"}])
        assert told["output"]["message"]["content"] == [{"text": "Hello."}] and told["stopReason"] == "end_turn", told
        self.is_usage(told["usage"])

    def image(self):
        image = {"format": "png", "source": {"bytes": base64.b64decode(given["image"])}}
        told = self.ask([{"text": "What?"}, {"image": image}])
        assert told["output"]["message"]["content"] == [{"text": "Hello."}], told

    def stream(self):
        events = self.stream_of("Hello")
        deltas = [e["contentBlockDelta"]["delta"]["text"] for e in events if "contentBlockDelta" in e]
        assert deltas == ["Hello."], events
        self.is_usage(events[-1]["metadata"]["usage"])

    def tools(self):
        told = self.ask([{"text": ASKS}], **self.given)
        said = told["output"]["message"]
        used = said["content"][0]["toolUse"]
        assert told["stopReason"] == "tool_use", told
        is_call(used["name"], used["input"])
        result = {"toolUseId": used["toolUseId"], "content": [{"text": GAVE}]}
        messages = [{"role": "user", "content": [{"text": ASKS}]}, said, {"role": "user", "content": [{"toolResult": result}]}]
        then = self.sdk.converse(modelId="its-m", messages=messages, **self.given)
        assert then["output"]["message"]["content"] == [{"text": "Hello."}], then

    def streamed_tools(self):
        events = self.stream_of(ASKS, **self.given)
        [start] = [e["contentBlockStart"]["start"]["toolUse"] for e in events if "contentBlockStart" in e]
        pieces = [e["contentBlockDelta"]["delta"]["toolUse"]["input"] for e in events if "contentBlockDelta" in e]
        is_call(start["name"], json.loads("".join(pieces)))

    def error(self):
        try:
            self.ask([{"text": "FAIL"}])
        except botocore.exceptions.ClientError as error:
            told = error.response["Error"]["Message"], error.response["ResponseMetadata"]["HTTPStatusCode"]
            assert told == ("slow down", 429), error.response
            return
        raise AssertionError("no error")


shown = {}
for sdk, kind in {"cohere": OfCohere, "bedrock": OfBedrock}.items():
    client = kind()
    shown[sdk] = []
    for name in ["text", "image", "stream", "tools", "streamed_tools", "error"]:
        getattr(client, name)()
        shown[sdk].append(name)
print(json.dumps(shown))
