"""Holds what a backend was asked against the types of its provider's own SDK: of AWS the model of its service, as boto3 has it.

In: {"dialect", "bodies"}. Prints how many bodies are right; one that is not ends the script.
"""

import json
import sys

import pydantic

given = json.load(sys.stdin)


def typed(kind):
    """A reader of bodies that are a typed dictionary, of whose members none is unknown."""
    adapter = pydantic.TypeAdapter(kind)
    known = set(kind.__annotations__) | {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}

    def judge(body):
        adapter.validate_python(body)
        assert set(body) <= known, set(body) - known

    return judge


def of_openai():
    from openai.types.chat import completion_create_params as params

    streaming, whole = typed(params.CompletionCreateParamsStreaming), typed(params.CompletionCreateParamsNonStreaming)
    return lambda body: (streaming if body.get("stream") else whole)(body)


def of_anthropic():
    from anthropic.types import message_create_params as params

    streaming, whole = typed(params.MessageCreateParamsStreaming), typed(params.MessageCreateParamsNonStreaming)
    return lambda body: (streaming if body.get("stream") else whole)(body)


def of_anthropic_on_vertex():
    judge = of_anthropic()

    def without_what_vertex_adds(body):
        # The path names the model there.
        assert body.pop("anthropic_version") == "vertex-2023-10-16" and "model" not in body, body
        judge({"model": "m", **body})

    return without_what_vertex_adds


def of_google():
    from google.genai import types

    class Body(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        contents: list[types.Content]
        systemInstruction: types.Content | None = None
        tools: list[types.Tool] | None = None
        toolConfig: types.ToolConfig | None = None
        generationConfig: types.GenerationConfig | None = None

    return Body.model_validate


def of_bedrock():
    import boto3
    from botocore.validate import ParamValidator

    client = boto3.client("bedrock-runtime", region_name="us-west-2", aws_access_key_id="k", aws_secret_access_key="s")
    shape = client.meta.service_model.operation_model("Converse").input_shape

    def judge(body):
        found = ParamValidator().validate({"modelId": "m", **body}, shape)
        assert not found.has_errors(), found.generate_report()

    return judge


def of_cohere():
    import inspect

    import cohere
    from cohere.types import AssistantChatMessageV2, SystemChatMessageV2, ToolChatMessageV2, ToolV2, UserChatMessageV2

    known = set(inspect.signature(cohere.V2Client.chat).parameters) | {"stream"} if hasattr(cohere, "V2Client") else None
    if known is None:
        known = set(inspect.signature(cohere.ClientV2.chat).parameters) | {"stream"}
    roles = {
        "user": UserChatMessageV2,
        "assistant": AssistantChatMessageV2,
        "system": SystemChatMessageV2,
        "tool": ToolChatMessageV2,
    }

    def judge(body):
        assert set(body) <= known, set(body) - known
        assert {"model", "messages", "stream"} <= set(body), body
        for message in body["messages"]:
            kind = roles[message["role"]]
            kind.model_validate(message)
            assert set(message) <= set(kind.model_fields), message
        for tool in body.get("tools", []):
            ToolV2.model_validate(tool)

    return judge


KINDS = {
    "openai": of_openai,
    "azure": of_openai,
    "anthropic": of_anthropic,
    "anthropic-on-vertex": of_anthropic_on_vertex,
    "gemini": of_google,
    "vertex": of_google,
    "bedrock": of_bedrock,
    "cohere": of_cohere,
}
judge = KINDS[given["dialect"]]()
for body in given["bodies"]:
    try:
        judge(body)
    except Exception as error:
        raise SystemExit(f"{given['dialect']}: {json.dumps(body)}: {error}")
print(len(given["bodies"]))
