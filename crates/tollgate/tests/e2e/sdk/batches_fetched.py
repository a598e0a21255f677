"""Fetches the results of all batches of a workload once more, with OpenAI's SDK.

In: {"base_url"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import openai

given = json.load(sys.stdin)
client = openai.OpenAI(
    base_url=given["base_url"] + "/v1",
    api_key="client-key",
    default_headers={"x-workload-app": "a"},
    max_retries=0,
    timeout=120,
)
for batch in client.batches.list(limit=1):
    again = client.batches.retrieve(batch.id)
    assert client.files.content(again.output_file_id).read()
print(json.dumps(["fetched"]))
