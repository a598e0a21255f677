"""Uses Google's SDK in front of a backend that speaks OpenAI's API, as it is set up for AI Studio and for Vertex AI.

In: {"base_url", "key"}. Prints for each way of setting it up the models that it lists; an unexpected result ends the script.
"""

import json
import sys

import google.oauth2.credentials
from google import genai
from google.genai import errors

given = json.load(sys.stdin)
BEARER = google.oauth2.credentials.Credentials(given["key"])
PROJECT = {"vertexai": True, "project": "p", "location": "l", "credentials": BEARER}
WAYS = {
    "studio": ({"api_key": given["key"]}, None),
    "studio_beta": ({"api_key": given["key"]}, "v1beta"),
    "express": ({"vertexai": True, "api_key": given["key"]}, None),
    "project": (PROJECT, None),
    "project_stable": (PROJECT, "v1"),
}


def used(client):
    models = [model.name for model in client.models.list()]
    for name in ("m", "org/n"):
        assert client.models.get(model=name).name.endswith(name.split("/")[-1]), name
        answer = client.models.generate_content(model=name, contents="Hello")
        assert answer.text and answer.usage_metadata.prompt_token_count > 0, answer
        chunks = list(client.models.generate_content_stream(model=name, contents="Hello"))
        assert "".join(chunk.text or "" for chunk in chunks), chunks
        assert chunks[-1].usage_metadata.candidates_token_count > 0, chunks[-1]
    for ask in (client.models.get, lambda model: client.models.generate_content(model=model, contents="Hello")):
        try:
            ask(model="other")
        except errors.ClientError as error:
            assert error.code == 404 and error.status == "NOT_FOUND", error
        else:
            raise AssertionError("it was let in")
    return models


shown = {}
for way, (options, version) in WAYS.items():
    http = {"base_url": given["base_url"], "api_version": version}
    shown[way] = used(genai.Client(http_options={k: v for k, v in http.items() if v}, **options))
print(json.dumps(shown))
