import AxeBuilder from '@axe-core/playwright';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { type ConsolePlatform, startConsolePlatform } from './console-platform.ts';
import { preparePages, type ShownPage } from './shown-pages.ts';

const SERIOUS = ['serious', 'critical'];

describe.runIf(hasBrowser())('every page of the console', () => {
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

  it.each(['light', 'dark'] as const)(
    'has no serious violation of accessibility rules in the %s theme, at 1280 and 360 px (PE-2)',
    async (theme) => {
      const found: string[] = [];
      for (const { name, path, isSignedOut, ready } of pages) {
        const { page, context, problems } = await openPage(browser, {
          baseURL: platform.platform.edgeUrl,
          theme,
          width: 360,
          ...(isSignedOut !== true && { apiKey: platform.platform.apiKey }),
        });
        await page.goto(path);
        await ready(page);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        if (width > 360) found.push(`${name}: scrolls sideways, ${width} px`);
        await page.setViewportSize({ width: 1280, height: 800 });
        const { violations } = await new AxeBuilder({ page }).analyze();
        for (const { id, impact, nodes } of violations) {
          if (!SERIOUS.includes(impact ?? '')) continue;
          found.push(`${name}: ${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
        }
        found.push(...problems);
        await context.close();
      }
      expect(found).toEqual([]);
    },
    300_000,
  );
});
