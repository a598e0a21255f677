// Has documents ranked by Cohere's SDK, in both versions of its API.
//
// In: {"base_url", "header"}. Prints the indices that each call gives.
import { input, load } from './modules.mjs';

const { CohereClient, CohereClientV2 } = load('cohere-ai');
const given = await input();
const headers = Object.fromEntries([given.header.split(': ')]);
const shown = [];
for (const Kind of [CohereClientV2, CohereClient]) {
  const sdk = new Kind({ token: 'client-key', environment: given.base_url });
  const asked = { model: 'm', query: 'a', documents: ['b', 'c'], topN: 1 };
  const told = await sdk.rerank(asked, { headers, maxRetries: 0 });
  shown.push(told.results.map((result) => result.index));
}
console.log(JSON.stringify(shown));
