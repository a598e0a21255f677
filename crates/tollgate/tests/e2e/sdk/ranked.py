"""Has documents ranked by Cohere's SDK, in both versions of its API.

In: {"base_url", "header"}. Prints the indices that each call gives.
"""

import json
import sys

import cohere
import httpx

given = json.load(sys.stdin)
name, value = given["header"].split(": ")
client = httpx.Client(headers={name: value})
shown = []
for kind in (cohere.ClientV2, cohere.Client):
    sdk = kind(api_key="client-key", base_url=given["base_url"], httpx_client=client)
    told = sdk.rerank(model="m", query="a", documents=["b", "c"], top_n=1)
    shown.append([result.index for result in told.results])
print(json.dumps(shown))
