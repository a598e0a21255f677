// Packages of npm, from where `cargo xtask setup` put them.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const modules = process.env.TOLLGATE_E2E_NODE_MODULES;
if (!modules) throw new Error('TOLLGATE_E2E_NODE_MODULES is not set');

export const load = createRequire(join(modules, 'here.cjs'));

export async function input() {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  return JSON.parse(text);
}
