/** `npm run screenshots -- [FOLDER]`: a picture of every page in both themes and at 1280 and 360 px. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildConsole, launchBrowser, openPage } from './browser.ts';
import { startConsolePlatform } from './console-platform.ts';
import { preparePages } from './shown-pages.ts';

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
  for (const { name, path, isSignedOut, ready } of pages) {
    if (only !== undefined && !name.includes(only)) continue;
    for (const theme of ['light', 'dark'] as const) {
      for (const width of [1280, 360]) {
        const { page, context } = await openPage(browser, {
          baseURL: platform.platform.edgeUrl,
          theme,
          width,
          ...(isSignedOut !== true && { apiKey: platform.platform.apiKey }),
        });
        await page.goto(path);
        await ready(page);
        // Balances and slots are read after the events of a run.
        await page.waitForTimeout(1_500);
        await page.screenshot({
          path: join(folder, `${name}-${theme}-${width}.png`),
          fullPage: true,
        });
        await context.close();
      }
    }
    console.log(name);
  }
} finally {
  await browser.close();
  await platform.close();
}
