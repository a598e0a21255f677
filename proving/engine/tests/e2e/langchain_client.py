"""LangChain's client for OpenAI against the engine itself. An unexpected result ends the script."""

import os

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

MODEL = "gpt-oss-120b"
place = {"base_url": os.environ["BASE_URL"], "api_key": "sk-engine", "max_retries": 0}
model = ChatOpenAI(model=MODEL, stream_usage=True, **place)

whole = model.invoke([SystemMessage("Be brief."), HumanMessage("Hello")])
assert whole.content and whole.usage_metadata["output_tokens"] > 0, whole
streamed = None
for chunk in model.stream([SystemMessage("Be brief."), HumanMessage("Hello")]):
    streamed = chunk if streamed is None else streamed + chunk
assert streamed.content == whole.content
assert streamed.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"]


def weather(place: str) -> str:
    """The weather of a place."""
    return "sunny in " + place


bound = model.bind_tools([weather], tool_choice="required")
asked = bound.invoke("Weather in Bern?")
[call] = asked.tool_calls
assert call["name"] == "weather" and "place" in call["args"]
turn = [HumanMessage("Weather in Bern?"), AIMessage("", tool_calls=[call]), ToolMessage("sunny", tool_call_id=call["id"])]
assert model.bind_tools([weather]).invoke(turn).content
assert len(model.batch(["a", "b", "c"])) == 3
vectors = OpenAIEmbeddings(model=MODEL, check_embedding_ctx_length=False, **place).embed_documents(["a", "b"])
assert len(vectors) == 2 and vectors[0] != vectors[1]
print("all well")
