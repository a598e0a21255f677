// Uses SDKs, one after the other, in front of a fake backend that answers in its own form: text, an image, a stream, a loop of tools,
// the same streamed, an error.
//
// In: {"base_url", "sdks", "image"}, the image in base64. Prints for each the names of the checks that passed; an unexpected result
// ends the script.
import assert from 'node:assert/strict';
import { input, load } from './modules.mjs';

const { Anthropic, RateLimitError } = load('@anthropic-ai/sdk');
const { ApiError, GoogleGenAI } = load('@google/genai');
const openai = load('openai');

const given = await input();
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const HEADERS = { 'x-workload-app': 'w' };
const COMMON = { apiKey: 'client-key', defaultHeaders: HEADERS, maxRetries: 0, timeout: 120_000 };
const [ASKS, GAVE] = ['How warm is it in Turin?', '21 degrees'];
const IMAGE = `data:image/png;base64,${given.image}`;
const user = (content) => [{ role: 'user', content }];

const isUsage = (asked, made) => assert.deepEqual([asked, made], [12, 3]);
const isCall = (name, values) => assert.deepEqual([name, values], ['weather', { city: 'Turin' }]);

async function all(stream) {
  const items = [];
  for await (const item of await stream) items.push(item);
  return items;
}

async function caught(kind, call) {
  try {
    await call();
  } catch (error) {
    assert(error instanceof kind, String(error));
    assert.equal(error.status, 429);
    return error;
  }
  throw new Error('no error');
}

class OfOpenAi {
  constructor() {
    this.chat = new openai.OpenAI({ baseURL: `${given.base_url}/v1`, ...COMMON }).chat.completions;
    this.given = [{ type: 'function', function: { name: 'weather', parameters: SCHEMA } }];
  }

  ask(messages, more) {
    return this.chat.create({ model: 'm', max_tokens: 100, messages, ...more });
  }

  async text() {
    const told = await this.ask([{ role: 'system', content: 'Be short.' }, ...user('Hello')]);
    const { message, finish_reason: reason } = told.choices[0];
    assert.deepEqual([message.content, reason], ['Hello.', 'stop']);
    isUsage(told.usage.prompt_tokens, told.usage.completion_tokens);
  }

  async image() {
    const shown = [{ type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: IMAGE } }];
    assert.equal((await this.ask(user(shown))).choices[0].message.content, 'Hello.');
  }

  async stream() {
    const options = { stream: true, stream_options: { include_usage: true } };
    const chunks = await all(this.ask(user('Hello'), options));
    assert.equal(chunks.map((c) => c.choices[0]?.delta.content ?? '').join(''), 'Hello.');
    isUsage(chunks.at(-1).usage.prompt_tokens, chunks.at(-1).usage.completion_tokens);
  }

  async tools() {
    const told = await this.ask(user(ASKS), { tools: this.given });
    const { message, finish_reason: reason } = told.choices[0];
    assert.equal(reason, 'tool_calls');
    const [call] = message.tool_calls;
    isCall(call.function.name, JSON.parse(call.function.arguments));
    const answer = { role: 'tool', tool_call_id: call.id, content: GAVE };
    const then = await this.ask([...user(ASKS), message, answer], { tools: this.given });
    assert.equal(then.choices[0].message.content, 'Hello.');
  }

  async streamed_tools() {
    const chunks = await all(this.ask(user(ASKS), { tools: this.given, stream: true }));
    const deltas = chunks.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []);
    const text = deltas.map((d) => d.function.arguments ?? '').join('');
    isCall(deltas[0].function.name, JSON.parse(text));
    assert(deltas[0].id);
  }

  async error() {
    const error = await caught(openai.RateLimitError, () => this.ask(user('FAIL')));
    assert.equal(error.error.message, 'slow down');
  }
}

class OfResponses {
  constructor() {
    this.responses = new openai.OpenAI({ baseURL: `${given.base_url}/v1`, ...COMMON }).responses;
    this.given = [{ type: 'function', name: 'weather', parameters: SCHEMA, strict: false }];
  }

  ask(items, more) {
    return this.responses.create({ model: 'm', max_output_tokens: 100, input: items, ...more });
  }

  async text() {
    const told = await this.ask('Hello', { instructions: 'Be short.' });
    assert.deepEqual([told.status, told.output_text], ['completed', 'Hello.']);
    isUsage(told.usage.input_tokens, told.usage.output_tokens);
  }

  async image() {
    const shown = [
      { type: 'input_text', text: 'What is it?' },
      { type: 'input_image', image_url: IMAGE, detail: 'auto' },
    ];
    assert.equal((await this.ask(user(shown))).output_text, 'Hello.');
  }

  async stream() {
    const events = await all(this.ask('Hello', { stream: true }));
    const deltas = events.filter((e) => e.type === 'response.output_text.delta');
    assert.equal(deltas.map((e) => e.delta).join(''), 'Hello.');
    const { usage } = events.at(-1).response;
    isUsage(usage.input_tokens, usage.output_tokens);
  }

  looped(told) {
    const [call] = told.output.filter((item) => item.type === 'function_call');
    isCall(call.name, JSON.parse(call.arguments));
    return call;
  }

  async tools() {
    const told = await this.ask(user(ASKS), { tools: this.given });
    const call = this.looped(told);
    const answer = { type: 'function_call_output', call_id: call.call_id, output: GAVE };
    const then = await this.ask([...user(ASKS), ...told.output, answer], { tools: this.given });
    assert.equal(then.output_text, 'Hello.');
  }

  async streamed_tools() {
    const events = await all(this.ask(user(ASKS), { tools: this.given, stream: true }));
    this.looped(events.at(-1).response);
  }

  async error() {
    const error = await caught(openai.RateLimitError, () => this.ask('FAIL'));
    assert.equal(error.error.message, 'slow down');
  }
}

class OfAnthropic {
  constructor() {
    this.messages = new Anthropic({ baseURL: given.base_url, ...COMMON }).messages;
    this.given = [{ name: 'weather', input_schema: SCHEMA }];
  }

  ask(messages, more) {
    return this.messages.create({ model: 'm', max_tokens: 100, messages, ...more });
  }

  streamed(messages, more) {
    const asked = { model: 'm', max_tokens: 100, messages, ...more };
    return this.messages.stream(asked).finalMessage();
  }

  async text() {
    const told = await this.ask(user('Hello'), { system: 'Be short.' });
    assert.deepEqual([told.content.at(-1).text, told.stop_reason], ['Hello.', 'end_turn']);
    assert(told._request_id);
    isUsage(told.usage.input_tokens, told.usage.output_tokens);
  }

  async image() {
    const source = { type: 'base64', media_type: 'image/png', data: given.image };
    const told = await this.ask(user([{ type: 'text', text: 'What is it?' }, { type: 'image', source }]));
    assert.equal(told.content.at(-1).text, 'Hello.');
  }

  async stream() {
    const told = await this.streamed(user('Hello'));
    assert.equal(told.content.at(-1).text, 'Hello.');
    isUsage(told.usage.input_tokens, told.usage.output_tokens);
  }

  looped(told) {
    const used = told.content.at(-1);
    assert.equal(told.stop_reason, 'tool_use');
    isCall(used.name, used.input);
    return used;
  }

  async tools() {
    const told = await this.ask(user(ASKS), { tools: this.given });
    const used = this.looped(told);
    const result = { type: 'tool_result', tool_use_id: used.id, content: GAVE };
    const messages = [...user(ASKS), { role: 'assistant', content: told.content }, ...user([result])];
    const then = await this.ask(messages, { tools: this.given });
    assert.equal(then.content.at(-1).text, 'Hello.');
  }

  async streamed_tools() {
    this.looped(await this.streamed(user(ASKS), { tools: this.given }));
  }

  async error() {
    const error = await caught(RateLimitError, () => this.ask(user('FAIL')));
    assert.deepEqual(error.error.error, { type: 'rate_limit_error', message: 'slow down' });
  }
}

class OfGoogle {
  options() {
    return { apiKey: 'client-key' };
  }

  constructor() {
    const httpOptions = { baseUrl: given.base_url, headers: HEADERS };
    this.models = new GoogleGenAI({ httpOptions, ...this.options() }).models;
    const declared = { name: 'weather', description: 'How warm it is.', parametersJsonSchema: SCHEMA };
    this.given = [{ functionDeclarations: [declared] }];
  }

  asked(contents, config) {
    return { model: 'm', contents, config: { maxOutputTokens: 100, ...config } };
  }

  ask(contents, config) {
    return this.models.generateContent(this.asked(contents, config));
  }

  streamed(contents, config) {
    return all(this.models.generateContentStream(this.asked(contents, config)));
  }

  async text() {
    const told = await this.ask('Hello', { systemInstruction: 'Be short.' });
    assert.equal(told.text, 'Hello.');
    isUsage(told.usageMetadata.promptTokenCount, told.usageMetadata.candidatesTokenCount);
  }

  async image() {
    const shown = { inlineData: { mimeType: 'image/png', data: given.image } };
    assert.equal((await this.ask([{ text: 'What is it?' }, shown])).text, 'Hello.');
  }

  async stream() {
    const chunks = await this.streamed('Hello');
    assert.equal(chunks.map((chunk) => chunk.text ?? '').join(''), 'Hello.');
    const usage = chunks.at(-1).usageMetadata;
    isUsage(usage.promptTokenCount, usage.candidatesTokenCount);
  }

  async tools() {
    const told = await this.ask(ASKS, { tools: this.given });
    const [call] = told.functionCalls;
    isCall(call.name, call.args);
    const gave = { name: 'weather', id: call.id, response: { output: GAVE } };
    const history = [
      { role: 'user', parts: [{ text: ASKS }] },
      told.candidates[0].content,
      { role: 'user', parts: [{ functionResponse: gave }] },
    ];
    assert.equal((await this.ask(history, { tools: this.given })).text, 'Hello.');
  }

  async streamed_tools() {
    const chunks = await this.streamed(ASKS, { tools: this.given });
    const [call] = chunks.flatMap((chunk) => chunk.functionCalls ?? []);
    isCall(call.name, call.args);
  }

  async error() {
    const error = await caught(ApiError, () => this.ask('FAIL'));
    const told = { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' };
    assert.deepEqual(JSON.parse(error.message).error, told);
  }
}

/** At Vertex AI's paths. Its SDK takes a key there, and no token that is given. */
class OfVertex extends OfGoogle {
  options() {
    return { vertexai: true, apiKey: 'client-key' };
  }
}

const kinds = { openai: OfOpenAi, responses: OfResponses, anthropic: OfAnthropic, gemini: OfGoogle, vertex: OfVertex };
const shown = {};
for (const sdk of given.sdks) {
  const client = new kinds[sdk]();
  shown[sdk] = [];
  for (const name of ['text', 'image', 'stream', 'tools', 'streamed_tools', 'error']) {
    await client[name]();
    shown[sdk].push(name);
  }
}
console.log(JSON.stringify(shown));
