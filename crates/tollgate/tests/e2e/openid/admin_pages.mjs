// Two people log in to the admin endpoint: one to whom roles are given, and one to whom none is. Prints what was shown, in
// order.
//
// `admin`, `issuer`: their origins. `stranger`: an origin at which this script serves a page.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { inBrowser, logIn, logOut } from './browser.mjs';

async function says(page, pattern) {
  assert.match(await page.locator('body').innerText(), pattern);
}

async function shown(page, { admin, issuer, stranger }) {
  const shown = [];
  const asked = page.waitForRequest((request) => request.url().startsWith(`${issuer}/auth?`));
  await page.goto(admin);
  const { searchParams } = new URL((await asked).url());
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  shown.push('the page leads to the provider');

  await logIn(page, 'ada');
  await page.waitForURL(`${admin}/`);
  await says(page, /logged in as ada@example\.test/);
  await says(page, /roles: read, keys/);
  shown.push('and back, with name and roles');

  const opened = await page.goto(`${admin}/config`);
  assert.equal(opened.status(), 200);
  const caller = await page.goto(`${admin}/api/v1/caller`);
  assert.deepEqual((await caller.json()).roles, ['read', 'keys']);
  shown.push('what the roles open is open');

  await page.goto(stranger);
  const seen = await page.evaluate(
    (url) => fetch(url, { credentials: 'include' }).then(({ status }) => status, () => 0),
    `${admin}/api/v1/caller`,
  );
  assert.equal(seen, 0);
  shown.push('and not to other pages');

  await page.goto(admin);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL(`${issuer}/**`);
  await logOut(page);
  await page.goto(admin);
  await logIn(page, 'bob');
  await page.waitForURL(`${admin}/`);
  await says(page, /logged in as bob@example\.test/);
  await says(page, /Nothing is open to you/);
  const refused = await page.goto(`${admin}/config`);
  assert.equal(refused.status(), 403);
  shown.push('nothing is open without a role');
  return shown;
}

await inBrowser(async (page, input) => {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>app</title><h1>app</h1>');
  });
  await new Promise((resolve) => server.listen(new URL(input.stranger).port, '127.0.0.1', resolve));
  try {
    return await shown(page, input);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
