// The client of the official TypeScript SDK that has sessions, as it comes: it does what a scenario of the conformance suite asks of a client,
// so that what the suite's server says of it by itself and behind a gate can be compared.
//
// node scenario.mjs SDK URL: SDK is the directory of `@modelcontextprotocol/sdk`; the suite names its scenario in MCP_CONFORMANCE_SCENARIO.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [sdk, url] = process.argv.slice(2);
const require = createRequire(join(sdk, 'package.json'));
const of = (path) => require(`@modelcontextprotocol/sdk/${path}`);
const { Client } = of('client');
const { StreamableHTTPClientTransport } = of('client/streamableHttp.js');
const { ElicitRequestSchema } = of('types.js');

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const called = {
  tools_call: { name: 'add_numbers', arguments: { a: 5, b: 3 } },
  'elicitation-sep1034-client-defaults': { name: 'test_client_elicitation_defaults', arguments: {} },
  'sse-retry': { name: 'test_reconnection', arguments: {} },
}[scenario];
const capabilities = scenario.startsWith('elicitation') ? { elicitation: { form: { applyDefaults: true } } } : {};
const client = new Client({ name: 'typescript-client', version: '1' }, { capabilities });
if (capabilities.elicitation) {
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
}
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.listTools();
if (called) {
  await client.callTool(called);
}
await client.close();
