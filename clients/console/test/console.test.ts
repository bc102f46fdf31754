import { readFileSync } from 'node:fs';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { exportedLine } from '@writ/audit/portable';
import {
  DecideApprovalRequestSchema,
  GetApprovalResponseSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import {
  HaltSchema,
  HaltState,
  ListHaltsRequestSchema,
  ListHaltsResponseSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { CancelRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { QueryUsageResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildConsole, changeAnswers, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { type ConsolePlatform, startConsolePlatform } from './console-platform.ts';

const LONG_TIMEOUT = { timeout: 60_000 };

describe.runIf(hasBrowser())('the console in Chromium', () => {
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

  const open = (apiKey?: string) =>
    openPage(browser, { baseURL: platform.platform.edgeUrl, ...(apiKey && { apiKey }) });

  it('signs in with an API key without storing it in the URL or a cookie, and signs out (PE-2)', async () => {
    const { page, context, problems } = await open();
    await page.goto('/');
    const key = page.getByLabel('API key', { exact: true });
    await key.fill('writ_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The API key is not valid.').waitFor();
    await key.fill(platform.platform.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    expect(page.url()).not.toContain('writ_');
    expect(await context.cookies()).toEqual([]);
    expect(await page.evaluate(() => Object.keys(localStorage).join())).not.toContain('key');
    await page.getByRole('button', { name: 'Signed in as developer' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Writ' }).waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows no data of the previous tenant after its key was rejected (PE-2, SYS-6)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('previous-tenant', 1200);
    await page.goto('/pools');
    const pool = page.getByRole('region', { name: `Pool of ${runId}` });
    await pool.waitFor();
    await page.route(/GetCaller/, (route) =>
      route.fulfill({
        status: 401,
        contentType: 'application/json',
        body: '{"code":"unauthenticated","message":"The API key is not valid."}',
      }),
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('heading', { name: 'Sign in to Writ' }).waitFor();
    await page.unroute(/GetCaller/);
    // The platform does not respond to the ListRuns call of the next user.
    await page.route(/ListRuns/, () => undefined);
    await page.getByLabel('API key', { exact: true }).fill(platform.otherTenantKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Pools', level: 1 }).waitFor();
    expect(await pool.count()).toBe(0);
    await platform.client.runs.cancelRun({ requestId: 'previous-tenant-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows a run live while it waits for a person, and its end after the approval (PE-1, PE-2)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('live', 1000);
    await page.goto(`/runs/${runId}`);
    const timeline = page.getByRole('table', { name: 'Timeline' });
    await timeline.getByText('high_refund_requires_human').waitFor();
    await timeline.getByText(/for a person: approval apr_/).waitFor();
    await page.getByRole('region', { name: 'Agents' }).getByText('waiting').waitFor();
    // Control characters of the goal are shown by their code.
    await page.getByText('plan.\\u001b[2J\\u202e').first().waitFor();
    const other = await open(platform.platform.apiKey);
    await other.page.goto(await platform.approvalOf(runId));
    await other.page.getByRole('button', { name: 'Approve', exact: true }).click();
    await other.page.getByText(/Approved by developer/).waitFor();
    // The first page shows the decision and the end without a reload.
    await timeline.getByText(/approved_with_cap:1000 by developer/).waitFor();
    await timeline.getByText('success', { exact: true }).waitFor();
    await page.getByText('completed').first().waitFor();
    expect([...problems, ...other.problems]).toEqual([]);
    await other.context.close();
    await context.close();
  });

  it('lists a run when it starts, and its state when it ends, without a reload (PE-1, PE-2)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    await page.goto('/runs');
    await page.getByText('live', { exact: true }).waitFor();
    const runId = await platform.startRefund('listed', 1200);
    const row = page.getByRole('row').filter({ hasText: runId });
    await row.getByText('suspended').waitFor();
    await platform.client.runs.cancelRun({ requestId: 'listed-end', runId });
    await row.getByText('cancelled').waitFor();
    await page.getByRole('textbox', { name: 'Agent' }).fill('another-agent');
    await page.getByText('No run matches the filters').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows the server error for an edit above the cap, and approves an edit within it (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('edited', 1200);
    await page.goto(await platform.approvalOf(runId));
    await page.getByText('You may not approve it as it is').waitFor();
    expect(await page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0);
    // Locked arguments cannot be changed.
    expect(await page.getByLabel('user_id').getAttribute('readonly')).not.toBeNull();
    const amount = page.getByLabel('amount_usd');
    await amount.fill('1150');
    await page.getByRole('button', { name: 'Approve with changes' }).click();
    await page.getByText("amount_usd 1150 exceeds developer's cap of 1100 USD").waitFor();
    await amount.fill('900');
    await page.getByRole('button', { name: 'Approve with changes' }).click();
    await page.getByText(/Approved by developer/).waitFor();
    await expect
      .poll(
        async () => (await platform.client.runs.getRun({ runId })).run?.result?.stopReason,
        LONG_TIMEOUT,
      )
      .toBe('success');
    await page.goto(`/runs/${runId}`);
    await page.getByText(/to issue_refund \{"amount_usd":900/).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows a cleared number as empty, and disables the approval while it is empty (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('cleared', 1200);
    await page.goto(await platform.approvalOf(runId));
    const amount = page.getByLabel('amount_usd');
    const approve = page.getByRole('button', { name: 'Approve with changes' });
    await amount.fill('900');
    expect(await approve.isEnabled()).toBe(true);
    await amount.fill('');
    expect(await amount.inputValue()).toBe('');
    expect(await approve.isDisabled()).toBe(true);
    await platform.client.runs.cancelRun({ requestId: 'cleared-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows whether the policy locks an argument or the user may not edit it (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('own', 1200);
    // Rights of a user to whom the four-eyes rule applies.
    await changeAnswers(page, /GetApproval/, GetApprovalResponseSchema, (answer) => {
      if (answer.approval?.readerRights !== undefined) answer.approval.readerRights.mayEdit = false;
    });
    await page.goto(await platform.approvalOf(runId));
    await page.getByText('You may not approve it as it is').waitFor();
    expect(await page.getByText('You may not change it').count()).toBe(1);
    expect(await page.getByText('Locked by the policy').count()).toBeGreaterThan(0);
    await platform.client.runs.cancelRun({ requestId: 'own-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('repeats a decision with the same request id after a lost response (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('lost', 1000);
    await page.goto(await platform.approvalOf(runId));
    const requests: string[] = [];
    await page.route(/DecideApproval/, async (route) => {
      const body = route.request().postDataBuffer() ?? Buffer.alloc(0);
      requests.push(fromBinary(DecideApprovalRequestSchema, body).requestId);
      if (requests.length < 3) await route.abort();
      else await route.continue();
    });
    const approve = page.getByRole('button', { name: 'Approve', exact: true });
    for (const sent of [1, 2]) {
      await approve.click();
      await expect.poll(() => requests.length).toBe(sent);
      await page.getByText('Writ cannot be reached.').waitFor();
    }
    await page.getByLabel('Comment').fill('Another answer.');
    await approve.click();
    await page.getByText(/Approved by developer/).waitFor();
    const [first, second, third] = requests;
    expect(second).toBe(first);
    expect(third).not.toBe(first);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('cancels a run with a new request id after a lost response and a changed reason (PE-2, RT-4)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    const runId = await platform.startRefund('cancel-lost', 1200);
    await page.goto(`/runs/${runId}`);
    const requests: string[] = [];
    await page.route(/CancelRun/, async (route) => {
      const body = route.request().postDataBuffer() ?? Buffer.alloc(0);
      requests.push(fromBinary(CancelRunRequestSchema, body).requestId);
      if (requests.length === 2) return await route.continue();
      // The platform executes the first request, and the page does not receive the response.
      await route.fetch();
      await route.abort();
    });
    await page.getByRole('button', { name: 'Actions' }).click();
    await page.getByRole('menuitem', { name: 'Cancel the run' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel the run' });
    const cancel = dialog.getByRole('button', { name: 'Cancel the run' });
    // The page would remove the dialog as soon as it read the new state of the run.
    await page.route(/GetRun|WatchRun/, () => undefined);
    await dialog.getByLabel('Reason').fill('Wrong user.');
    await cancel.click();
    await dialog.getByText('Writ cannot be reached.').waitFor();
    await dialog.getByLabel('Reason').fill('Wrong user and amount.');
    await cancel.click();
    await page.getByText(`Run ${runId} is being cancelled.`).waitFor();
    expect(new Set(requests).size).toBe(2);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows a warning if usage has more rows than the page sums (PE-2)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    await page.goto('/usage');
    await page.getByText('Calls without an answer').waitFor();
    expect(await page.getByText('Only part of the usage is included').count()).toBe(0);
    await changeAnswers(page, /QueryUsage/, QueryUsageResponseSchema, (answer) => {
      answer.nextPageToken = 'more';
    });
    await page.goto('/usage');
    await page.getByText('These are the first 20,000 rows').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('reports unreadable settings on the sign-in page and on the OIDC callback page (PE-2)', async () => {
    const { page, context } = await open();
    await page.goto('/signed-in?code=c&state=s');
    await page.getByText('This platform has no sign-in at an OIDC issuer.').waitFor();
    await page.route('**/console.json', (route) => route.fulfill({ status: 500 }));
    for (const path of ['/signed-in?code=c&state=s', '/']) {
      await page.goto(path);
      await page.getByText('The settings of the console could not be read.').waitFor();
    }
    await context.close();
  });

  it('rejects an action with a comment; the inbox is live (PE-2)', async () => {
    const { page, context, problems } = await open(platform.approverKey);
    await page.goto('/');
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
    await page.getByText('Nothing waits for you').waitFor();
    const runId = await platform.startRefund('rejected', 1200);
    await page.getByRole('link', { name: /issue_refund/ }).click();
    // An approver can read the evidence although the role does not permit reading runs.
    const evidence = page.getByRole('region', { name: 'Evidence' });
    await evidence.getByText(/Refund Anna/).waitFor();
    await evidence.getByText(/get_refund_context/).waitFor();
    await page.getByLabel('Comment').fill('The plan was used.');
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText(/Rejected by the-approver/).waitFor();
    const { run } = await platform.client.runs.getRun({ runId });
    expect(run?.runId).toBe(runId);
    expect(await navigation(page)).toEqual(['Approvals']);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows an auditor every page without actions that change data (PE-1)', async () => {
    const runId = await platform.startRefund('audited', 1200);
    const approval = await platform.approvalOf(runId);
    const { page, context, problems } = await open(platform.auditorKey);
    await page.goto('/');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    expect(await navigation(page)).toEqual([
      'Runs',
      'Approvals',
      'Usage',
      'Pools',
      'Audit',
      'Halts',
    ]);
    for (const [path, heading] of [
      [`/runs/${runId}`, /Run of refund-worker/],
      [approval, /Approve issue_refund/],
      ['/usage', /Usage/],
      ['/pools', /Pools/],
      ['/audit', /Audit/],
      ['/halts', /Halts/],
    ] as const) {
      await page.goto(path);
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      const offered = page.getByRole('button', {
        name: /^(Approve|Reject|Halt|Lift|Actions|Cancel)/,
      });
      expect(await offered.count(), path).toBe(0);
      expect(await page.getByRole('alert').count(), path).toBe(0);
    }
    await platform.client.runs.cancelRun({ requestId: 'audited-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('halts a tenant after the user types its name, and lifts the halt (SV-9)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    await page.goto('/halts');
    await page.getByRole('button', { name: 'Halt', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Halt' });
    await dialog.getByLabel('Reason').fill('Wrong refunds.');
    const confirm = dialog.getByRole('button', { name: 'Halt' });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByLabel('Type default to confirm').fill('default');
    await confirm.click();
    const card = page.getByRole('article', { name: 'Halt of tenant default' });
    await card.getByText('in force').waitFor();
    const { halts } = await platform.client.control.listHalts({ inForceOnly: true });
    expect(halts.map(({ reason }) => reason)).toEqual(['Wrong refunds.']);
    await card.getByRole('button', { name: 'Lift' }).click();
    await page.getByRole('button', { name: 'Lift the halt' }).click();
    await page.getByText('No halt is in force').waitFor();
    expect((await platform.client.control.listHalts({ inForceOnly: true })).halts).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('shows the error of a lift only in the dialog of that halt (PE-2, SV-9)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    await changeAnswers(page, /ListHalts/, ListHaltsResponseSchema, (answer) => {
      answer.halts = ['first', 'second'].map((tenant) =>
        create(HaltSchema, {
          haltId: `hlt_${tenant}`,
          scope: { kind: { case: 'tenant', value: tenant } },
          state: HaltState.IN_FORCE,
        }),
      );
    });
    await page.route(/ControlService\/Resume/, (route) => route.abort());
    await page.goto('/halts');
    const lift = (tenant: string) => {
      const card = page.getByRole('article', { name: `Halt of tenant ${tenant}` });
      return card.getByRole('button', { name: 'Lift' }).click();
    };
    const dialog = page.getByRole('dialog', { name: 'Lift the halt' });
    await lift('first');
    await dialog.getByRole('button', { name: 'Lift the halt' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await lift('second');
    await dialog.getByText('Agents in tenant second').waitFor();
    expect(await dialog.getByRole('alert').count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('loads further pages of halts on request (PE-2, SV-9)', async () => {
    const { page, context, problems } = await open(platform.platform.apiKey);
    await page.route(/ListHalts/, async (route) => {
      const body = route.request().postDataBuffer() ?? Buffer.alloc(0);
      const { pageToken } = fromBinary(ListHaltsRequestSchema, body);
      const [tenants, nextPageToken] =
        pageToken === '' ? [['first', 'second'], 'next'] : [['third'], ''];
      const halts = tenants.map((tenant) =>
        create(HaltSchema, {
          haltId: `hlt_${tenant}`,
          scope: { kind: { case: 'tenant', value: tenant } },
          state: HaltState.RESUMED,
        }),
      );
      const answer = create(ListHaltsResponseSchema, { halts, nextPageToken });
      await route.fulfill({
        contentType: 'application/proto',
        body: Buffer.from(toBinary(ListHaltsResponseSchema, answer)),
      });
    });
    await page.goto('/halts');
    await page.getByText('all', { exact: true }).click();
    const third = page.getByRole('article', { name: 'Halt of tenant third' });
    await page.getByRole('article', { name: 'Halt of tenant second' }).waitFor();
    expect(await third.count()).toBe(0);
    const more = page.getByRole('button', { name: 'Load older halts' });
    await more.click();
    await third.waitFor();
    expect(await page.getByRole('article').count()).toBe(3);
    expect(await more.count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('downloads the audit chain, verifies it in the browser, and detects a modified chain (SV-8, PE-2)', async () => {
    const { page, context, problems } = await open(platform.auditorKey);
    await page.goto('/audit');
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText(/The chain of tenant default is valid: \d+ records/).waitFor();
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const lines = readFileSync(await (await downloaded).path(), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines.at(-1)).toContain('"type":"head"');
    const changed = lines.map((line, index) =>
      index === 1 ? line.replace('default', 'defaulT') : line,
    );
    const chooser = page.waitForEvent('filechooser');
    await page.getByLabel('Export').click();
    await (await chooser).setFiles({
      name: 'changed.jsonl',
      mimeType: 'application/jsonl',
      buffer: Buffer.from(`${changed.join('\n')}\n`),
    });
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText('The chain is invalid').waitFor();
    await page.getByText(/^Line 2: /).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('removes the verdict, and aborts a verification in progress, when an input changes (SV-8, PE-2)', async () => {
    const { page, context, problems } = await open(platform.auditorKey);
    await page.goto('/audit');
    const verify = page.getByRole('button', { name: 'Verify' });
    const verdict = page.getByText(
      /The chain of tenant default is valid|The chain is invalid|^Line /,
    );
    const choose = async (label: string) => {
      const chooser = page.waitForEvent('filechooser');
      await page.getByLabel(label).click();
      const file = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('{}\n') };
      await (await chooser).setFiles(file);
    };
    for (const change of [
      () => choose('Export'),
      () => page.getByLabel('Starts after record').fill('2'),
      () => page.getByLabel('A file that I kept').check(),
    ]) {
      await verify.click();
      await verdict.first().waitFor();
      await change();
      await expect.poll(() => verdict.count()).toBe(0);
    }
    await choose('Key file');
    await verify.click();
    await page.getByRole('alert').first().waitFor();
    await choose('Key file');
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);

    await page.reload();
    await page.route(/ExportAudit/, () => undefined);
    await verify.click();
    await page.getByText('Reading the chain').waitFor();
    await choose('Export');
    await page.getByText('Reading the chain').waitFor({ state: 'hidden' });
    expect(await verify.isEnabled()).toBe(true);
    expect(problems).toEqual([]);
    await context.close();
  });

  it('verifies a partial export after the user enters the record that it follows (SV-8, PE-2)', async () => {
    const lines: string[] = [];
    for await (const entry of platform.client.audit.exportAudit({ afterSequence: 2n })) {
      lines.push(exportedLine(entry));
    }
    const { page, context, problems } = await open(platform.auditorKey);
    await page.goto('/audit');
    const chooser = page.waitForEvent('filechooser');
    await page.getByLabel('Export').click();
    await (await chooser).setFiles({
      name: 'partial.jsonl',
      mimeType: 'application/jsonl',
      buffer: Buffer.from(`${lines.join('\n')}\n`),
    });
    const verify = page.getByRole('button', { name: 'Verify' });
    await verify.click();
    await page.getByText('Line 1: records 1 to 2 are missing before record 3.').waitFor();
    const start = page.getByLabel('Starts after record');
    await start.fill('two');
    expect(await verify.isDisabled()).toBe(true);
    await start.fill('2');
    await verify.click();
    await page.getByText(/The chain of tenant default is valid: \d+ records, 3 to /).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });
});

/** The names of the pages in the navigation. */
async function navigation(page: Page): Promise<string[]> {
  const links = page.getByRole('navigation').getByRole('link');
  return (await links.allInnerTexts()).map((text) => text.split('\n')[0] ?? '');
}
