// Uses the SDK through the gate: every dialect, unary and streamed, and errors.
//
// In: {"base_url", "models"}. Prints the names of the checks that passed; an unexpected result ends the script.
import assert from 'node:assert/strict';
import { input, openai } from './openai.mjs';

const given = await input();
const model = given.models[0];
const messages = [{ role: 'user', content: 'Hello' }];
const tool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a place',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
};

const clientOf = (workload) =>
  new openai.OpenAI({
    baseURL: given.base_url,
    apiKey: 'client-key',
    defaultHeaders: { 'x-workload-app': workload },
    maxRetries: 0,
    timeout: 120_000,
  });
const client = clientOf('open');
const chat = (more) => client.chat.completions.create({ model, messages, ...more });

async function all(stream) {
  const items = [];
  for await (const item of await stream) items.push(item);
  return items;
}

const textOf = (chunks) => chunks.map((c) => c.choices[0].delta.content ?? '').join('');

async function chat_whole() {
  const { choices, usage, _request_id } = await chat();
  assert(choices[0].message.content && _request_id);
  assert(usage.completion_tokens > 0);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
}

async function chat_streamed_without_usage_asked() {
  for (const options of [{}, { stream_options: { include_usage: false } }, { stream_options: {} }]) {
    const chunks = await all(chat({ stream: true, ...options }));
    for (const chunk of chunks) {
      assert.equal(chunk.choices.length, 1);
      assert.equal(chunk.usage ?? null, null);
    }
    assert.equal(textOf(chunks), (await chat()).choices[0].message.content);
    assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  }
}

async function chat_streamed_with_usage_asked() {
  const chunks = await all(chat({ stream: true, stream_options: { include_usage: true } }));
  const last = chunks.pop();
  for (const chunk of chunks) {
    assert.equal(chunk.choices.length, 1);
    assert.equal(chunk.usage ?? null, null);
  }
  const answer = await chat();
  assert.deepEqual([last.choices, last.usage], [[], answer.usage]);
  assert.equal(textOf(chunks), answer.choices[0].message.content);
}

async function chat_cut_by_length() {
  const answer = await chat({ max_tokens: 3 });
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.equal(answer.usage.completion_tokens, 3);
}

async function tool_calls() {
  const more = { tools: [tool], tool_choice: 'required' };
  const { tool_calls: calls } = (await chat(more)).choices[0].message;
  assert.equal(calls.length, 1);
  assert.equal(calls[0].function.name, 'weather');
  assert('place' in JSON.parse(calls[0].function.arguments));
  const chunks = await all(chat({ stream: true, ...more }));
  const pieces = chunks.flatMap((c) => c.choices[0].delta.tool_calls ?? []);
  assert.equal(pieces.map((p) => p.function.arguments ?? '').join(''), calls[0].function.arguments);
}

async function responses() {
  const answer = await client.responses.create({ model, input: 'Hello' });
  assert.equal(answer.status, 'completed');
  assert(answer.output_text && answer.usage.output_tokens > 0);
  const events = await all(client.responses.create({ model, input: 'Hello', stream: true }));
  assert.deepEqual(events.map((e) => e.sequence_number), [...events.keys()]);
  const last = events.at(-1);
  assert.deepEqual([events[0].type, last.type], ['response.created', 'response.completed']);
  const deltas = events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta);
  assert.equal(deltas.join(''), answer.output_text);
  assert.deepEqual(last.response.usage, answer.usage);
}

async function completions() {
  const ask = { model, prompt: 'Hello' };
  const answer = await client.completions.create(ask);
  const chunks = await all(client.completions.create({ ...ask, stream: true }));
  for (const chunk of chunks) {
    assert.equal(chunk.choices.length, 1);
    assert.equal(chunk.usage ?? null, null);
  }
  assert.equal(chunks.map((c) => c.choices[0].text).join(''), answer.choices[0].text);
  const options = { stream: true, stream_options: { include_usage: true } };
  const last = (await all(client.completions.create({ ...ask, ...options }))).at(-1);
  assert.deepEqual([last.choices, last.usage], [[], answer.usage]);
}

async function embeddings() {
  const answer = await client.embeddings.create({ model, input: ['Hello', 'World'] });
  assert.equal(answer.data.length, 2);
  for (const { embedding } of answer.data) assert(embedding.length > 0);
  assert(answer.usage.total_tokens > 0);
}

async function models() {
  const listed = (await all(client.models.list())).map((m) => m.id);
  assert.deepEqual(listed.sort(), [...given.models].sort());
  assert.equal((await client.models.retrieve(model)).id, model);
  await caught(openai.NotFoundError, 404, () => client.models.retrieve('no-such-model'));
}

async function caught(kind, status, call, code) {
  let caughtError;
  await assert.rejects(call, (error) => {
    caughtError = error;
    return true;
  });
  assert.equal(caughtError.constructor, kind, String(caughtError));
  assert.equal(caughtError.status, status);
  assert(caughtError.requestID && caughtError.message && caughtError.error);
  if (code) assert.equal(caughtError.code, code);
  return caughtError;
}

async function errors() {
  await caught(openai.NotFoundError, 404, () => chat({ model: 'no-such-model' }));
  await caught(openai.BadRequestError, 400, () => chat({ max_tokens: 'many' }));
  await caught(openai.BadRequestError, 400, () => chat({ stream: 'yes' }));
  await caught(openai.BadRequestError, 400, () => chat({ messages: 'Hello' }));
  const guest = clientOf('guest');
  await caught(openai.NotFoundError, 404, () => guest.models.list(), 'workload_not_registered');
  const tight = clientOf('tight');
  const ask = () => tight.chat.completions.create({ model, messages });
  assert((await ask()).choices[0].message.content);
  const refused = await caught(openai.RateLimitError, 429, ask, 'rate_limit_exceeded');
  assert(Number(refused.headers.get('retry-after')) >= 1);
}

async function fifty_at_once() {
  const one = async (i, stream) => {
    const body = { model, messages: [{ role: 'user', content: `Number ${i}` }], stream };
    const answer = await client.chat.completions.create(body);
    return stream ? textOf(await all(answer)) : answer.choices[0].message.content;
  };
  const fifty = (stream) => Promise.all(Array.from({ length: 50 }, (_, i) => one(i, stream)));
  const whole = await fifty(false);
  // The engine's text depends on the prompt alone: an answer to another call would differ.
  assert.deepEqual(await fifty(true), whole);
  assert(new Set(whole).size > 25);
}

const shown = [
  chat_whole,
  chat_streamed_without_usage_asked,
  chat_streamed_with_usage_asked,
  chat_cut_by_length,
  tool_calls,
  responses,
  completions,
  embeddings,
  models,
  errors,
  fifty_at_once,
];
for (const show of shown) await show();
console.log(JSON.stringify(shown.map((show) => show.name)));
