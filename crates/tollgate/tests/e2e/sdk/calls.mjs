// Makes chat calls one after another and prints the outcome of each in the SDK.
//
// In: {"base_url", "retries", "calls": [{"headers", "query", "api_key", "body"}]}; a header of null is omitted.
// Only an answer with an error status is an outcome; any other failure ends the script.
import assert from 'node:assert/strict';
import { input, openai } from './openai.mjs';

function client(given, call) {
  return new openai.OpenAI({
    baseURL: given.base_url,
    apiKey: call.api_key ?? 'client-key',
    defaultHeaders: call.headers,
    defaultQuery: call.query,
    maxRetries: given.retries ?? 0,
    timeout: 120_000,
  });
}

function whole(answer) {
  assert.equal(answer.choices.length, 1);
  const [choice] = answer.choices;
  return { model: answer.model, text: choice.message.content, finish: choice.finish_reason };
}

async function streamed(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const models = new Set(chunks.map((c) => c.model));
  const finishes = chunks.map((c) => c.choices[0].finish_reason).filter(Boolean);
  assert.equal(models.size, 1);
  assert.equal(finishes.length, 1);
  const text = chunks.map((c) => c.choices[0].delta.content ?? '').join('');
  return { model: [...models][0], text, finish: finishes[0], chunks: chunks.length };
}

async function outcome(given, call) {
  let answered;
  try {
    answered = await client(given, call).chat.completions.create(call.body).withResponse();
  } catch (error) {
    // A connection that fails is an APIError without a status: not an outcome.
    if (!(error instanceof openai.APIError) || error.status === undefined) throw error;
    return {
      error: error.constructor.name,
      status: error.status,
      code: error.code,
      request_id: error.requestID,
      headers: Object.fromEntries(error.headers),
    };
  }
  const { data, response } = answered;
  return {
    error: null,
    status: response.status,
    headers: Object.fromEntries(response.headers),
    request_id: response.headers.get('x-request-id'),
    ...(call.body.stream ? await streamed(data) : whole(data)),
  };
}

const given = await input();
const outcomes = [];
for (const call of given.calls) outcomes.push(await outcome(given, call));
console.log(JSON.stringify(outcomes));
