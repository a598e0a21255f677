"""Goes on from responses that the gate keeps, with OpenAI's SDK; the backend has chat completions alone.

In: {"base_url"}. Prints the names of the checks that passed; an unexpected result ends the script.
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
    ).responses


ours, others = client_of("open"), client_of("tight")
shown = []


def refused(kind, status, code, call):
    try:
        call()
    except kind as error:
        assert (error.status_code, error.code) == (status, code), error
    else:
        raise AssertionError(code)


first = ours.create(model="m", input="My name is Ada.", max_output_tokens=20)
assert first.store and first.id.startswith("resp_") and first.previous_response_id is None, first
asked = {"model": "m", "input": "What is my name?", "previous_response_id": first.id, "max_output_tokens": 20}
*_, ended = ours.create(stream=True, **asked)
assert ended.type in ("response.completed", "response.incomplete"), ended
second = ended.response
assert second.previous_response_id == first.id and second.id != first.id, second
# The backend was told the turns before, too.
assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens, (first, second)
third = ours.create(
    model="m",
    input=[{"role": "user", "content": "And again?"}],
    previous_response_id=second.id,
    instructions="Be short.",
    max_output_tokens=20,
)
assert third.usage.input_tokens > second.usage.input_tokens + second.usage.output_tokens, (second, third)
shown.append("goes_on")

assert ours.retrieve(second.id) == second, second
assert ours.retrieve(third.id).previous_response_id == second.id
shown.append("retrieved")

page = ours.input_items.list(third.id, order="asc", limit=2)
assert page.has_more and [item.role for item in page.data] == ["user", "assistant"], page
items = list(ours.input_items.list(third.id, order="asc", limit=2))
assert [item.role for item in items] == ["user", "assistant", "user", "assistant", "user"], items
assert items[0].content[0].text == "My name is Ada." and items[1].id == first.output[0].id, items
assert items[4].content[0].text == "And again?", items
assert [item.id for item in ours.input_items.list(third.id)] == [item.id for item in reversed(items)]
refused(openai.NotFoundError, 404, "response_not_found", lambda: others.input_items.list(third.id))
refused(openai.BadRequestError, 400, "items_page_invalid", lambda: ours.input_items.list(third.id, after="nobody"))
shown.append("input_items")

refused(openai.NotFoundError, 404, "response_not_found", lambda: others.retrieve(first.id))
refused(
    openai.BadRequestError,
    400,
    "previous_response_not_found",
    lambda: others.create(model="m", input="a", previous_response_id=first.id),
)
refused(openai.NotFoundError, 404, "response_not_found", lambda: others.delete(first.id))
shown.append("of_its_caller_alone")

unkept = ours.create(model="m", input="a", store=False, max_output_tokens=5)
assert not unkept.store, unkept
refused(openai.NotFoundError, 404, "response_not_found", lambda: ours.retrieve(unkept.id))
refused(
    openai.BadRequestError,
    400,
    # Nobody has it: the gate does not, and the backend speaks another dialect.
    "call_not_translatable",
    lambda: ours.create(model="m", input="a", previous_response_id="resp_of_somebody"),
)
shown.append("not_kept")

ours.delete(second.id)
refused(openai.NotFoundError, 404, "response_not_found", lambda: ours.retrieve(second.id))
refused(
    openai.BadRequestError,
    400,
    "previous_response_not_found",
    lambda: ours.create(model="m", input="a", previous_response_id=third.id),
)
assert ours.create(model="m", input="a", previous_response_id=first.id, max_output_tokens=5).output_text
shown.append("removed")

print(json.dumps(shown))
