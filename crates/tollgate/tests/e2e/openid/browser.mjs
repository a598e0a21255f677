// A headless Chromium, driven by Playwright, in which somebody logs in at the provider of `provider.mjs`. It reaches nothing
// but this machine: the provider's pages name a style sheet elsewhere.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const modules = process.env.TOLLGATE_E2E_NODE_MODULES;
if (!modules) throw new Error('TOLLGATE_E2E_NODE_MODULES is not set');
const { chromium } = createRequire(join(modules, 'here.cjs'))('playwright-core');

// Longest wait for anything, milliseconds.
const TIMEOUT = 30_000;

// Runs `steps` with a page of a new browser and with what stands on standard input, and prints what it gives as JSON.
// Where it fails, the page is kept as a picture at `input.screenshot`, and its address is told.
export async function inBrowser(steps) {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  const input = JSON.parse(text);
  const browser = await chromium.launch({
    executablePath: input.chromium,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  });
  const context = await browser.newContext();
  context.setDefaultTimeout(TIMEOUT);
  const page = await context.newPage();
  try {
    console.log(JSON.stringify(await steps(page, input, context)));
  } catch (error) {
    console.error(`at ${page.url()}: ${error.stack}\n${await page.content().catch(() => '')}`);
    await page.screenshot({ path: input.screenshot });
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

// On the provider's page: types the name, logs in, and consents to what the gate asks for.
export async function logIn(page, name) {
  await page.locator('input[name=login]').fill(name);
  await page.locator('input[name=password]').fill('anything');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

// On the provider's page: ends the session that it has with this browser.
export async function logOut(page) {
  await page.getByRole('button', { name: 'Yes, sign me out' }).click();
  await page.getByRole('heading', { name: 'Sign-out Success' }).waitFor();
}
