"""Sends a file of calls, has a batch made of it and fetches its result, with OpenAI's SDK; two workloads share the account.

In: {"base_url", "model", "other"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import openai

given = json.load(sys.stdin)


def client_of(workload):
    return openai.OpenAI(
        base_url=given["base_url"] + "/v1",
        api_key="client-key",
        default_headers={"x-workload-app": workload},
        max_retries=0,
        timeout=120,
    )


ours, others = client_of("a"), client_of("b")
shown = []


def refused(status, code, call):
    try:
        call()
    except openai.APIStatusError as error:
        assert (error.status_code, error.code) == (status, code), error
        return str(error)
    raise AssertionError(code)


def calls(*models):
    lines = [
        json.dumps(
            {
                "custom_id": f"call-{nth}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": model, "messages": [{"role": "user", "content": "Hello"}]},
            }
        )
        for nth, model in enumerate(models)
    ]
    return ("calls.jsonl", "\n".join(lines).encode())


model, other = given["model"], given["other"]
file = ours.files.create(file=calls(model, model, model), purpose="batch")
assert file.purpose == "batch", file
assert ours.files.retrieve(file.id).id == file.id
assert ours.files.content(file.id).read().startswith(b'{"custom_id"')
shown.append("uploaded")

told = refused(400, "batch_call_refused", lambda: others.files.create(file=calls(model, other), purpose="batch"))
assert "call 2" in told, told
shown.append("refused_line")

for call in (others.files.retrieve, others.files.content, others.files.delete):
    refused(404, "file_not_found", lambda call=call: call(file.id))
asked = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
refused(404, "file_not_found", lambda: others.batches.create(input_file_id=file.id, **asked))
refused(404, "file_not_found", lambda: ours.batches.create(input_file_id="file-none", **asked))
shown.append("of_its_workload_alone")

batch = ours.batches.create(input_file_id=file.id, metadata={"for": "tests"}, **asked)
assert batch.status == "in_progress", batch
refused(404, "batch_not_found", lambda: others.batches.retrieve(batch.id))
refused(404, "batch_not_found", lambda: others.batches.cancel(batch.id))
shown.append("begun")

assert [of.id for of in ours.batches.list()] == [batch.id]
assert [of.id for of in others.batches.list()] == []
# The gate may have heard of the result by now, which is a file, too.
assert file.id in [of.id for of in ours.files.list()]
assert [of.id for of in others.files.list()] == []
shown.append("listed")

over = ours.batches.retrieve(batch.id)
assert over.status == "completed" and over.output_file_id, over
shown.append("over")

lines = ours.files.content(over.output_file_id).text.splitlines()
assert len(lines) == 3, lines
refused(404, "file_not_found", lambda: others.files.content(over.output_file_id))
shown.append("result")

assert ours.files.delete(file.id).deleted
refused(404, "file_not_found", lambda: ours.files.retrieve(file.id))
shown.append("removed")

print(json.dumps(shown))
