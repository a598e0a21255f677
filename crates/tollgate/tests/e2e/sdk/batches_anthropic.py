"""Has batches of messages made and fetches their results, with Anthropic's SDK; two workloads share the account.

In: {"base_url"}. Prints the names of the checks that passed; an unexpected result ends the script.
"""

import json
import sys

import anthropic

given = json.load(sys.stdin)


def client_of(workload):
    return anthropic.Anthropic(
        base_url=given["base_url"],
        api_key="client-key",
        default_headers={"x-workload-app": workload},
        max_retries=0,
        timeout=120,
    )


ours, others = client_of("a"), client_of("b")
shown = []


def refused(status, part, call):
    try:
        call()
    except anthropic.APIStatusError as error:
        assert error.status_code == status and part in str(error), error
        return
    raise AssertionError(part)


def requests(*models):
    return [
        {
            "custom_id": f"call-{nth}",
            "params": {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]},
        }
        for nth, model in enumerate(models)
    ]


batches, theirs = ours.messages.batches, others.messages.batches
batch = batches.create(requests=requests("claude-small", "claude-big", "claude-small"))
assert batch.processing_status == "in_progress", batch
shown.append("begun")

refused(400, "call 2 of the batch", lambda: theirs.create(requests=requests("claude-small", "claude-big")))
shown.append("refused_request")

for call in (theirs.retrieve, theirs.cancel, theirs.delete):
    refused(404, "batch_not_found", lambda call=call: call(batch.id))
refused(404, "batch_not_found", lambda: batches.retrieve("msgbatch_none"))
shown.append("of_its_workload_alone")

assert [of.id for of in batches.list()] == [batch.id]
assert [of.id for of in theirs.list()] == []
shown.append("listed")

over = batches.retrieve(batch.id)
assert over.processing_status == "ended" and over.results_url.startswith("/v1/"), over
results = list(batches.results(batch.id))
assert [of.custom_id for of in results] == ["call-0", "call-1", "call-2"], results
assert all(of.result.type == "succeeded" for of in results), results
shown.append("result")

# Its result tells what it used: it stays until that is counted.
while True:
    try:
        batches.delete(batch.id)
        break
    except anthropic.APIStatusError as error:
        assert error.status_code == 409 and "batch_uncounted" in str(error), error
refused(404, "batch_not_found", lambda: batches.retrieve(batch.id))
shown.append("removed")

file = ours.beta.files.upload(file=("notes.txt", b"Hello", "text/plain"))
assert ours.beta.files.retrieve_metadata(file.id).id == file.id
refused(404, "file_not_found", lambda: others.beta.files.retrieve_metadata(file.id))
assert [of.id for of in ours.beta.files.list()] == [file.id]
ours.beta.files.delete(file.id)
refused(404, "file_not_found", lambda: ours.beta.files.retrieve_metadata(file.id))
shown.append("files")

print(json.dumps(shown))
