// Opens a report from disk in a headless Chromium, in each size, scheme and with and without script, and prints what was
// seen. Nothing can be reached from there. Pictures are taken where a directory for them is named.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = process.env.TOLLGATE_E2E_NODE_MODULES;
if (!modules) throw new Error('TOLLGATE_E2E_NODE_MODULES is not set');
const { chromium } = createRequire(join(modules, 'here.cjs'))('playwright-core');

let text = '';
for await (const chunk of process.stdin) text += chunk;
const input = JSON.parse(text);
const address = pathToFileURL(input.page).href;
const browser = await chromium.launch({
  executablePath: input.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
    '--host-resolver-rules=MAP * ~NOTFOUND'],
});

// Chromium may refuse a picture on a busy machine ("Unable to capture screenshot"); the page is the same at the next try.
async function picture(page, name, options) {
  if (!input.pictures) return;
  const path = join(input.pictures, name);
  for (let tries = 1; ; tries += 1) {
    try {
      await page.screenshot({ path, ...options });
      return;
    } catch (refused) {
      if (tries === 5 || !`${refused}`.includes('Unable to capture screenshot')) throw refused;
      await page.waitForTimeout(500);
    }
  }
}

async function look(width, scheme, script) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, javaScriptEnabled: script,
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const found = { width, scheme, script, console: [], requests: [], violations: [] };
  page.on('console', (message) => found.console.push(message.text()));
  page.on('pageerror', (error) => found.console.push(String(error)));
  page.on('request', (request) => {
    const url = request.url();
    if (url !== address && !url.startsWith('data:')) found.requests.push(url);
  });
  if (script) {
    await page.addInitScript(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective));
    });
  }
  await page.goto(address, { waitUntil: 'load' });
  found.charts = await page.locator('svg.chart').count();
  found.text = (await page.locator('main').innerText()).length;
  found.scrolls = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  found.cut = await page.evaluate(() => [...document.querySelectorAll('.wide')]
    .filter((wide) => wide.scrollWidth > wide.clientWidth)
    .map((wide) => wide.parentElement.querySelector('figcaption').innerText));
  found.words = await page.evaluate(() => [...document.querySelectorAll('svg.chart')].flatMap((chart) => {
    const all = chart.getBoundingClientRect();
    const dots = [...chart.querySelectorAll('.dot')].map((dot) => dot.getBoundingClientRect());
    return [...chart.querySelectorAll('text')].flatMap((text) => {
      const box = text.getBoundingClientRect();
      const says = `${chart.getAttribute('aria-label')}: ${text.textContent}`;
      const isCut = box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1;
      const isOn = (dot) => {
        const [x, y] = [(dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2];
        return x > box.left && x < box.right && y > box.top && y < box.bottom;
      };
      const isOfPoint = text.matches('.mark, .point');
      return [...(isCut ? [`cut: ${says}`] : []), ...(isOfPoint && dots.some(isOn) ? [`on a point: ${says}`] : [])];
    });
  }));
  found.values = '';
  if (script && found.charts > 0) {
    const chart = page.locator('svg.chart').first();
    await chart.scrollIntoViewIfNeeded();
    await chart.hover();
    found.values = await page.locator('.values').innerText();
    await picture(page, `${width}-${scheme}-hover.png`, {});
    await page.mouse.move(0, 0);
    found.violations = await page.evaluate(() => window.violations);
  }
  await picture(page, `${width}-${scheme}-${script}.png`, { fullPage: true });
  if (width === 1440 && scheme === 'light' && script) {
    await page.pdf({ path: input.pictures ? join(input.pictures, 'a4.pdf') : undefined, preferCSSPageSize: true });
  }
  await context.close();
  return found;
}

try {
  const all = [];
  for (const width of [390, 1440]) {
    for (const scheme of ['light', 'dark']) {
      const without = await look(width, scheme, false);
      const with_ = await look(width, scheme, true);
      all.push({ ...without, text_without_script: without.text }, { ...with_, text_without_script: without.text });
    }
  }
  console.log(JSON.stringify(all));
} finally {
  await browser.close();
}
