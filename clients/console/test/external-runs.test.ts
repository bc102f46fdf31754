import type { TestPlatform } from '@writ/testing/platform';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, REFUND, startTeamPlatform } from '../../../test/agent-proxy/external-team.ts';
import { startMcpRun } from '../../../test/agent-proxy/mcp-run.ts';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';

describe.runIf(hasBrowser())('runs of external agents in Chromium', () => {
  let test: TestPlatform;
  let browser: Browser;

  beforeAll(async () => {
    buildConsole();
    test = await startTeamPlatform();
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await test?.close();
  });

  const open = () =>
    openPage(browser, { baseURL: test.platform.edgeUrl, apiKey: test.platform.apiKey });

  it('show kind, sub-agents and an edited approval, and can be closed (AP-1, AP-4, AP-6, PE-2)', async () => {
    const run = await startMcpRun(test);
    const helper = { 'x-writ-agent': 'helper-1' };
    await callTool(run, 'get_refund_context', { user_id: 42 }, helper);
    await callTool(run, 'get_refund_context', { user_id: 42 });
    const refund = callTool(run, 'issue_refund', REFUND);
    const { page, context, problems } = await open();
    await page.goto('/runs');
    const row = page.getByRole('row').filter({ hasText: run.runId });
    await row.getByText('external', { exact: true }).waitFor();
    await row.getByRole('link').click();
    const agents = page.getByRole('region', { name: 'Agents' });
    await agents.getByText('refund-bot', { exact: true }).waitFor();
    await agents
      .getByRole('listitem')
      .getByRole('listitem')
      .getByText('helper-bot', { exact: true })
      .waitFor();
    await page
      .getByRole('region', { name: 'About this run' })
      .getByText('external', { exact: true })
      .waitFor();
    await page.getByRole('link', { name: 'Approvals of this run' }).click();
    await page.getByRole('link', { name: /issue_refund/ }).click();
    await page.getByLabel('amount_usd').fill('800');
    await page.getByRole('button', { name: 'Approve with changes' }).click();
    await page.getByText(/Approved by developer/).waitFor();
    // On a slow machine the call returns before the decision and must be repeated.
    const first = await refund;
    const isPending = first.includes('io.writ/pending');
    const result = isPending ? await callTool(run, 'issue_refund', REFUND) : first;
    expect(result).toContain('Executed with changed arguments: {\\"amount_usd\\":800');
    await page.goto(`/runs/${run.runId}`);
    await page.getByText(/to issue_refund \{"amount_usd":800/).waitFor();
    await page.getByRole('button', { name: 'Actions' }).click();
    await page.getByRole('menuitem', { name: 'Close the run' }).click();
    await page.getByRole('button', { name: 'Close the run' }).click();
    await page.getByText('completed').first().waitFor();
    await page.getByRole('table', { name: 'Timeline' }).getByText('closed').first().waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('show the end of a run whose program has stopped (AP-1, PE-2)', async () => {
    const { runId } = await startMcpRun(test, 'restless-bot');
    const { page, context, problems } = await open();
    await page.goto(`/runs/${runId}`);
    await page.getByText('timed out').first().waitFor();
    await page.getByRole('region', { name: 'About this run' }).getByText('idle').waitFor();
    // A finished run has no actions.
    expect(await page.getByRole('button', { name: 'Actions' }).count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });
});
