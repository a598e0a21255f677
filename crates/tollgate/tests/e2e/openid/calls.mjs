// Somebody logs in to have pages call the gate, and logs out again. Prints what was shown, in order.
//
// `gate`, `issuer`: their origins. `app`, `stranger`, `elsewhere`: origins at which this script serves a page each. The gate
// is configured for the first and the last; that is of another site, to which browsers give no session.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { inBrowser, logIn, logOut } from './browser.mjs';

function serve(origin) {
  const { port } = new URL(origin);
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>app</title><h1>app</h1>');
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

// Has the page call the gate with what the browser has for it. Gives the status, 0 where the page may not see it.
function call(page, gate) {
  return page.evaluate(async (url) => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
    const headers = { 'content-type': 'application/json' };
    const answer = fetch(url, { method: 'POST', credentials: 'include', headers, body });
    return answer.then(({ status }) => status, () => 0);
  }, `${gate}/v1/chat/completions`);
}

async function shown(page, { gate, issuer, app, stranger, elsewhere }, context) {
  const shown = [];
  await page.goto(app);
  assert.equal(await call(page, gate), 401);
  shown.push('nobody is let in');

  const asked = page.waitForRequest((request) => request.url().startsWith(`${issuer}/auth?`));
  await page.goto(`${gate}/v1/models`);
  const { searchParams } = new URL((await asked).url());
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  assert.equal(new URL(page.url()).origin, issuer);
  shown.push('a page leads to the provider');

  await logIn(page, 'ada');
  await page.waitForURL(`${gate}/v1/models`);
  assert.match(await page.locator('body').innerText(), /"object":\s*"list"/);
  shown.push('and back to the page');

  const session = (await context.cookies(gate)).find(({ name }) => name === 'tollgate');
  assert.deepEqual([session.httpOnly, session.sameSite], [true, 'Lax']);
  assert.ok(!(await page.evaluate(() => document.cookie)).includes('tollgate'));
  shown.push('no script sees the session');

  assert.equal(await call(page, gate), 200);
  await page.goto(app);
  assert.equal(await call(page, gate), 200);
  shown.push('pages of both origins call');

  await page.goto(stranger);
  assert.equal(await call(page, gate), 0);
  await page.goto(elsewhere);
  assert.equal(await call(page, gate), 401);
  shown.push('other pages do not');

  await page.goto(`${gate}/v1/models`);
  await page.evaluate(() => {
    const form = document.createElement('form');
    Object.assign(form, { method: 'POST', action: '/logout' });
    document.body.append(form);
    form.submit();
  });
  await page.waitForURL(`${issuer}/**`);
  await logOut(page);
  await page.goto(app);
  assert.equal(await call(page, gate), 401);
  shown.push('the session ends');

  await page.goto(`${gate}/v1/models`);
  await page.locator('input[name=login]').waitFor();
  shown.push('at the provider too');
  return shown;
}

await inBrowser(async (page, input, context) => {
  const servers = await Promise.all([input.app, input.stranger, input.elsewhere].map(serve));
  try {
    return await shown(page, input, context);
  } finally {
    servers.forEach((server) => server.closeAllConnections() ?? server.close());
  }
});
