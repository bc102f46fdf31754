import type { Page } from 'playwright-core';
import type { ConsolePlatform } from './console-platform.ts';

/** A page and the state in which it is shown. */
export interface ShownPage {
  readonly name: string;
  readonly path: string;
  /** Whether the page is shown before the sign-in. */
  readonly isSignedOut?: boolean;
  /** Waits until the content is shown, and opens the part of the page that the screenshot shows. */
  readonly ready: (page: Page) => Promise<unknown>;
}

/** Creates runs, approvals and a halt, and returns every page of the console. */
export async function preparePages(platform: ConsolePlatform): Promise<readonly ShownPage[]> {
  const { client, startRefund } = platform;
  const done = await startRefund('shown-done', 1000);
  const first = await pending(platform, done);
  await client.approvals.decideApproval({
    requestId: 'shown-approve',
    approvalId: first,
    answer: { case: 'approve', value: {} },
    comment: 'Checked with the customer.',
  });
  await until(async () => (await client.runs.getRun({ runId: done })).run?.result !== undefined);
  const waiting = await startRefund('shown-waiting', 1200);
  const approvalId = await pending(platform, waiting);
  const halted = await startRefund('shown-halted', 1200);
  await pending(platform, halted);
  await client.control.halt({
    requestId: 'shown-halt',
    scope: { kind: { case: 'run', value: { tenant: 'default', runId: halted } } },
    reason: 'The customer disputes the charge; legal looks into it.',
  });
  const heading = (name: string | RegExp) => (page: Page) =>
    page.getByRole('heading', { name, level: 1 }).waitFor();
  const text = (shown: string | RegExp) => (page: Page) => page.getByText(shown).first().waitFor();
  return [
    { name: 'sign-in', path: '/', isSignedOut: true, ready: heading('Sign in to Writ') },
    { name: 'runs', path: '/runs', ready: text(done) },
    { name: 'runs-empty', path: '/runs?agent=none', ready: text('No run matches the filters') },
    { name: 'run-completed', path: `/runs/${done}`, ready: text('success') },
    { name: 'run-waiting', path: `/runs/${waiting}`, ready: text('high_refund_requires_human') },
    { name: 'run-missing', path: '/runs/run_none', ready: text(/does not exist/) },
    { name: 'approvals', path: '/approvals', ready: text(/issue_refund/) },
    { name: 'approvals-decided', path: '/approvals?show=decided', ready: text(/by developer/) },
    { name: 'approval', path: `/approvals/${approvalId}`, ready: text('Earlier steps') },
    { name: 'approval-decided', path: `/approvals/${first}`, ready: text(/Approved by developer/) },
    { name: 'usage', path: '/usage', ready: text('By agent') },
    { name: 'pools', path: '/pools', ready: text('preempted') },
    {
      name: 'audit',
      path: '/audit',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Verify' }).click();
        await page.getByText('The chain is valid').waitFor();
      },
    },
    {
      name: 'audit-record',
      path: '/audit',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Record 2', exact: true }).click();
        await page.getByText('previous hash').waitFor();
      },
    },
    { name: 'halts', path: '/halts', ready: text(/legal looks/) },
    {
      name: 'halt-dialog',
      path: '/halts',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Halt', exact: true }).click();
        await page.getByText('Type default to confirm').waitFor();
      },
    },
    { name: 'not-found', path: '/none', ready: heading('Page not found') },
  ];
}

async function pending({ client }: ConsolePlatform, runId: string): Promise<string> {
  let id = '';
  await until(async () => {
    const { approvals } = await client.approvals.listApprovals({ runId });
    id = approvals[0]?.approvalId ?? '';
    return id !== '';
  });
  return id;
}

/** Waits for a state of the platform. */
async function until(isReached: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await isReached())) {
    if (Date.now() > deadline) throw new Error('The state was not reached within a minute.');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
