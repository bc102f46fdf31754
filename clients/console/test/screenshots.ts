/**
 * `npm run screenshots -- [FOLDER [NAME]]`: takes screenshots of every page, or of the pages whose name contains NAME,
 * in both themes and at 1280 and 360 px.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page, Request } from 'playwright-core';
import { buildConsole, launchBrowser, openPage } from './browser.ts';
import { startConsolePlatform } from './console-platform.ts';
import { preparePages, type ShownPage } from './shown-pages.ts';

type Theme = (typeof THEMES)[number];
const THEMES = ['light', 'dark'] as const;
const WIDTHS = [1280, 360];
/** Number of pages that are open at the same time. */
const AT_ONCE = 3;

const folder = resolve(process.argv[2] ?? 'dist/screenshots');
const only = process.argv[3];
mkdirSync(folder, { recursive: true });
buildConsole();
const platform = await startConsolePlatform({
  WRIT_CONSOLE_TRACE_URL: 'http://127.0.0.1:16686/trace/{trace_id}',
});
const browser = await launchBrowser();
try {
  const pages = await preparePages(platform);
  const shown = pages
    .filter(({ name }) => only === undefined || name.includes(only))
    .flatMap((page) => THEMES.map((theme) => ({ ...page, theme })));
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (let next = shown.shift(); next !== undefined; next = shown.shift()) await capture(next);
  });
  await Promise.all(workers);
} finally {
  await browser.close();
  await platform.close();
}

/** Takes the screenshots of a page in one theme. */
async function capture({
  name,
  path,
  isSignedOut,
  ready,
  theme,
}: ShownPage & { readonly theme: Theme }): Promise<void> {
  const { page, context } = await openPage(browser, {
    baseURL: platform.platform.edgeUrl,
    theme,
    ...(isSignedOut !== true && { apiKey: platform.platform.apiKey }),
  });
  const requests = new Set<Request>();
  page.on('request', (request) => {
    // Watch requests are not tracked, because these streams do not end.
    if (!/\/Watch\w+$/.test(request.url())) requests.add(request);
  });
  const onEnd = (request: Request) => void requests.delete(request);
  page.on('requestfinished', onEnd);
  page.on('requestfailed', onEnd);
  await page.goto(path);
  await ready(page);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await settled(page, requests);
    const file = join(folder, `${name}-${theme}-${width}.png`);
    await page.screenshot({ path: file, fullPage: true });
  }
  await context.close();
  console.log(`${name} ${theme}`);
}

/**
 * Waits until no request has been in flight for 600 ms, because balances and slots are read after the events of a run.
 */
async function settled(page: Page, requests: ReadonlySet<Request>): Promise<void> {
  for (let quiet = 0; quiet < 6; quiet = requests.size === 0 ? quiet + 1 : 0)
    await page.waitForTimeout(100);
}
