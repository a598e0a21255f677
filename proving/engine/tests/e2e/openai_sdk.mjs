// The OpenAI SDK for Node against the engine itself. An unexpected result ends the script.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.TOLLGATE_E2E_NODE_MODULES, "from-here.js"));
const { default: OpenAI } = require("openai");
const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "sk-engine", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const ask = { model, messages: [{ role: "user", content: "Hello" }] };

const whole = await client.chat.completions.create(ask);
const message = whole.choices[0].message;
assert(message.content && message.reasoning_content);
let said = "";
let usage;
const options = { stream: true, stream_options: { include_usage: true } };
for await (const chunk of await client.chat.completions.create({ ...ask, ...options })) {
  said += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(said, message.content);
assert.deepEqual(usage, whole.usage);

const response = await client.responses.create({ model, input: "Hello" });
assert(response.output_text && response.usage.output_tokens > 0);
let deltas = "";
for await (const event of await client.responses.create({ model, input: "Hello", stream: true })) {
  if (event.type === "response.output_text.delta") deltas += event.delta;
}
assert.equal(deltas, response.output_text);

const plain = await client.completions.create({ model, prompt: "Once", max_tokens: 5 });
assert.equal(plain.usage.completion_tokens, 5);
assert.equal((await client.embeddings.create({ model, input: ["a", "b"] })).data.length, 2);
await assert.rejects(client.chat.completions.create({ ...ask, model: "nobody" }), OpenAI.NotFoundError);
await assert.rejects(client.chat.completions.create({ ...ask, max_tokens: 0 }), OpenAI.BadRequestError);
console.log("all well");
