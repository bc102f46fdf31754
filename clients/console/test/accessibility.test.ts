import AxeBuilder from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { type ConsolePlatform, startConsolePlatform } from './console-platform.ts';
import { preparePages, type ShownPage } from './shown-pages.ts';

const SERIOUS = ['serious', 'critical'];
/** The WCAG AA rules of axe that depend on colors. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

describe.runIf(hasBrowser())('the accessibility check of the console', () => {
  let browser: Browser;
  let platform: ConsolePlatform;
  let pages: readonly ShownPage[];

  beforeAll(async () => {
    buildConsole();
    platform = await startConsolePlatform();
    pages = await preparePages(platform);
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await platform?.close();
  });

  it('finds no serious violation in either theme and no overflow at 360 px (PE-2)', async () => {
    const found: string[] = [];
    for (const { name, path, isSignedOut, ready } of pages) {
      const { page, context, problems } = await openPage(browser, {
        baseURL: platform.platform.edgeUrl,
        theme: 'dark',
        width: 360,
        ...(isSignedOut !== true && { apiKey: platform.platform.apiKey }),
      });
      await page.goto(path);
      await ready(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > 360) found.push(`${name}: scrolls sideways, ${width} px`);
      await page.setViewportSize({ width: 1280, height: 800 });
      const inDark = await seriousViolations(page);
      await switchToLight(page);
      // The themes differ in their colors only.
      const inLight = await seriousViolations(page, COLOR_RULES);
      for (const violation of [...inDark, ...inLight]) found.push(`${name}: ${violation}`);
      found.push(...problems);
      await context.close();
    }
    expect(found).toEqual([]);
  }, 300_000);

  it('finds text with too little contrast', async () => {
    const { page, context } = await openPage(browser, {
      baseURL: platform.platform.edgeUrl,
      theme: 'dark',
    });
    await page.goto('/');
    await switchToLight(page);
    await page.evaluate(() => {
      document.body.innerHTML =
        '<main><h1>Runs</h1><p style="color: #777; background: #888">Pending</p></main>';
    });
    expect(await seriousViolations(page, COLOR_RULES)).toEqual([
      expect.stringContaining('color-contrast'),
    ]);
    await context.close();
  });
});

async function switchToLight(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  const theme = () => page.evaluate(() => document.documentElement.dataset.mantineColorScheme);
  await expect.poll(theme).toBe('light');
}

/** Returns the serious violations of a page; default: of all rules. */
async function seriousViolations(page: Page, rules?: readonly string[]): Promise<string[]> {
  const builder = new AxeBuilder({ page });
  if (rules !== undefined) builder.withRules([...rules]);
  const { violations } = await builder.analyze();
  return violations
    .filter(({ impact }) => SERIOUS.includes(impact ?? ''))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}
