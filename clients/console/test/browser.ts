import { execFileSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUILT = join(ROOT, 'clients/console/dist/index.html');

/** The browser of Debian's package `chromium`, or the one that WRIT_CHROMIUM names. */
const EXECUTABLE = process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium';

/** Whether a test of the console can run. Where servers are required, a missing browser is an error. */
export function hasBrowser(): boolean {
  if (existsSync(EXECUTABLE)) return true;
  if (process.env.WRIT_REQUIRE_SERVICES === undefined) return false;
  throw new Error(
    `${EXECUTABLE} does not exist; install the package chromium, or set WRIT_CHROMIUM.`,
  );
}

/** Builds the console when a source is newer than the built files. */
export function buildConsole(): void {
  const sources = globSync('clients/console/{src/**/*,public/*,index.html,vite.config.ts}', {
    cwd: ROOT,
  });
  const newest = Math.max(...sources.map((file) => statSync(join(ROOT, file)).mtimeMs));
  if (existsSync(BUILT) && statSync(BUILT).mtimeMs >= newest) return;
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-console.ts')], { stdio: 'inherit' });
}

/** Starts the browser without a window. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Options of {@link openPage}. */
export interface PageOptions {
  readonly baseURL: string;
  /** The API key with which the page is signed in; default: it shows the sign-in. */
  readonly apiKey?: string;
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
}

/** A page, and the errors that it reported. */
export interface OpenedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts and of the content security policy. */
  readonly problems: string[];
}

/** Opens a page of the console in a context of its own. */
export async function openPage(browser: Browser, options: PageOptions): Promise<OpenedPage> {
  const { baseURL, apiKey, theme = 'light', width = 1280, height = 800 } = options;
  const context = await browser.newContext({
    baseURL,
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  context.setDefaultTimeout(30_000);
  if (apiKey !== undefined) {
    await context.addInitScript((key) => sessionStorage.setItem('writ.api-key', key), apiKey);
  }
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Refused to/i.test(message.text())) problems.push(message.text());
  });
  return { page, context, problems };
}
