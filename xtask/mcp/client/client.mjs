// The clients of the official TypeScript SDKs, as they come: they ask a server of the conformance suite for one of everything and print what
// they were told, so that what they are told by the server itself and through a gate can be compared.
//
// node client.mjs URL SDK MODE: SDK is the directory of `@modelcontextprotocol/sdk`, or that of `@modelcontextprotocol/client`, which speaks the
// version without sessions too; MODE is then `legacy` or `auto`.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [url, sdk, mode] = process.argv.slice(2);
const { name } = JSON.parse(readFileSync(join(sdk, 'package.json'), 'utf8'));
const require = createRequire(join(sdk, 'package.json'));
const of = (path) => require(path === '' ? name : `${name}/${path}`);
const isOne = name === '@modelcontextprotocol/sdk';
const { Client } = of(isOne ? 'client' : '');
const { StreamableHTTPClientTransport } = of(isOne ? 'client/streamableHttp.js' : '');

const client = new Client({ name: 'typescript-client', version: '1' }, isOne ? {} : { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const told = {};
told.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
told.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name).sort();
told.resources = (await client.listResources()).resources.map((resource) => resource.uri).sort();
told.text = (await client.callTool({ name: 'test_simple_text', arguments: {} })).content;
told.error = (await client.callTool({ name: 'test_error_handling', arguments: {} })).isError;
const prompt = { name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } };
told.prompt = (await client.getPrompt(prompt)).messages;
told.resource = (await client.readResource({ uri: 'test://static-text' })).contents;
const refused = client.callTool({ name: 'nobody_has_this', arguments: {} });
told.refused = await refused.then((answer) => answer.isError === true, () => true);
await client.close();
console.log(JSON.stringify(told));
