import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { type ConsolePlatform, startConsolePlatform } from './console-platform.ts';

/** Upper bound for the number of focusable elements on a page. */
const MOST_TABS = 60;

describe.runIf(hasBrowser())('the console without a mouse', () => {
  let browser: Browser;
  let platform: ConsolePlatform;

  beforeAll(async () => {
    buildConsole();
    platform = await startConsolePlatform();
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await platform?.close();
  });

  const open = async (path: string) => {
    const { edgeUrl: baseURL, apiKey } = platform.platform;
    const opened = await openPage(browser, { baseURL, apiKey });
    await opened.page.goto(path);
    return opened;
  };

  /** Opens the only pending approval from the inbox. */
  const openApproval = async (page: Page): Promise<void> => {
    await page.getByText('live', { exact: true }).waitFor();
    const link = page.getByRole('link', { name: /issue_refund/ });
    await link.waitFor();
    await tabTo(page, link);
    await page.keyboard.press('Enter');
    await page.getByText('Your decision').waitFor();
  };

  it('approves, edits and rejects (PE-2, SV-5)', async () => {
    const { page, context } = await open('/runs');
    await platform.startRefund('keys-approve', 1000);
    await tabTo(page, page.getByRole('link', { name: /^Approvals/ }));
    await page.keyboard.press('Enter');
    await openApproval(page);
    await tabTo(page, page.getByRole('button', { name: 'Approve', exact: true }));
    await page.keyboard.press('Enter');
    await page.getByText(/Approved by developer/).waitFor();

    await platform.startRefund('keys-edit', 1200);
    await page.goto('/approvals');
    await openApproval(page);
    await tabTo(page, page.getByLabel('amount_usd'));
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('900');
    await tabTo(page, page.getByRole('button', { name: 'Approve with changes' }));
    await page.keyboard.press('Enter');
    await page.getByText(/Approved by developer/).waitFor();

    await platform.startRefund('keys-reject', 1200);
    await page.goto('/approvals');
    await openApproval(page);
    await tabTo(page, page.getByLabel('Comment'));
    await page.keyboard.type('The plan was used.');
    await tabTo(page, page.getByRole('button', { name: 'Reject' }));
    await page.keyboard.press('Enter');
    await page.getByText(/Rejected by developer/).waitFor();
    await context.close();
  });

  it('halts a tenant, and restores the focus when a dialog is closed (PE-2, SV-9)', async () => {
    const { page, context } = await open('/halts');
    const button = page.getByRole('button', { name: 'Halt', exact: true });
    await button.waitFor();
    await tabTo(page, button);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => hasFocus(button)).toBe(true);
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await tabTo(page, dialog.getByLabel('Reason'));
    await page.keyboard.type('Stop first.');
    await tabTo(page, dialog.getByLabel('Type default to confirm'));
    await page.keyboard.type('default');
    await tabTo(page, dialog.getByRole('button', { name: 'Halt', exact: true }));
    await page.keyboard.press('Enter');
    await page.getByText('Stop first.').waitFor();
    const { halts } = await platform.client.control.listHalts({ inForceOnly: true });
    expect(halts.map(({ reason }) => reason)).toEqual(['Stop first.']);
    await context.close();
  });
});

/** Presses the tab key until an element has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
    await page.keyboard.press('Tab');
    if (await hasFocus(target)) return;
  }
  throw new Error(`${target} cannot be reached with the tab key.`);
}

function hasFocus(target: Locator): Promise<boolean> {
  return target.evaluate((element) => element === document.activeElement);
}
