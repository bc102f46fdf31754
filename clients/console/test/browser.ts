import { execFileSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUILT = join(ROOT, 'clients/console/dist/index.html');
const LOCK = join(ROOT, 'node_modules/.cache/console-build.lock');

/** The browser of Debian's package `chromium`, or the one that WRIT_CHROMIUM names. */
const EXECUTABLE = process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium';

/** Returns whether tests of the console can run. If WRIT_REQUIRE_SERVICES is set, a missing browser is an error. */
export function hasBrowser(): boolean {
  if (existsSync(EXECUTABLE)) return true;
  if (process.env.WRIT_REQUIRE_SERVICES === undefined) return false;
  throw new Error(
    `${EXECUTABLE} does not exist; install the package chromium, or set WRIT_CHROMIUM.`,
  );
}

/**
 * Builds the console when a source is newer than the built files. If several test processes run, one builds and the
 * others wait.
 */
export function buildConsole(): void {
  while (!acquireLock()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  try {
    buildChanged();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

/**
 * Tries to acquire the lock; returns false if it exists. Removes the lock of a dead process, so that the next attempt
 * succeeds.
 */
function acquireLock(): boolean {
  try {
    mkdirSync(dirname(LOCK), { recursive: true });
    writeFileSync(LOCK, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const holder = existsSync(LOCK) ? Number(readFileSync(LOCK, 'utf8')) : 0;
    if (holder > 0 && !isAlive(holder)) rmSync(LOCK, { force: true });
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function buildChanged(): void {
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
  /** The API key that signs the page in; default: the page shows the sign-in. */
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

/** Opens a page of the console in a new browser context. */
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

/**
 * Intercepts an RPC and responds to every call with the modified first response, even to a call with a page token that
 * the platform did not issue.
 */
export async function changeAnswers<Desc extends DescMessage>(
  page: Page,
  method: RegExp,
  schema: Desc,
  change: (answer: MessageShape<Desc>) => void,
): Promise<void> {
  let first: Buffer | undefined;
  await page.route(method, async (route) => {
    first ??= await (await route.fetch()).body();
    const answer = fromBinary(schema, first);
    change(answer);
    await route.fulfill({
      contentType: 'application/proto',
      body: Buffer.from(toBinary(schema, answer)),
    });
  });
}
