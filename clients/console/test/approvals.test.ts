import { create, toBinary } from '@bufbuild/protobuf';
import {
  EditableArgumentSchema,
  ReaderRightsSchema,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  GetApprovalResponseSchema,
  WatchApprovalsResponseSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildConsole, changeAnswers, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { type ConsolePlatform, startConsolePlatform } from './console-platform.ts';

describe.runIf(hasBrowser())('approvals in the console', () => {
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

  const open = () => {
    const { edgeUrl: baseURL, apiKey } = platform.platform;
    return openPage(browser, { baseURL, apiKey });
  };

  it.each([
    ['850.50', 850.5],
    ['0.75', 0.75],
  ])('execute exactly the amount that was typed: %s (PE-2, SV-5)', async (text, usd) => {
    const { page, context, problems } = await open();
    const runId = await platform.startRefund(`typed-${usd * 100}`, 1200);
    const path = await platform.approvalOf(runId);
    await page.goto(path);
    const amount = page.getByLabel('amount_usd');
    const approve = page.getByRole('button', { name: 'Approve with changes' });
    await amount.fill('');
    await amount.pressSequentially(text);
    expect(await amount.inputValue()).toBe(text);
    await approve.click();
    await page.getByText(/Approved by developer/).waitFor();
    const { approval } = await platform.client.approvals.getApproval({
      approvalId: path.split('/').at(-1) ?? '',
    });
    const executed = approval?.executedAction?.kind;
    const json = executed?.case === 'tool' ? executed.value.argumentsJson : '{}';
    expect(JSON.parse(json)).toMatchObject({ amount_usd: usd });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('cannot be approved while an amount is incomplete or ambiguous (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open();
    const runId = await platform.startRefund('incomplete', 1200);
    await page.goto(await platform.approvalOf(runId));
    const amount = page.getByLabel('amount_usd');
    const approve = page.getByRole('button', { name: 'Approve with changes' });
    await amount.fill('900');
    expect(await approve.isEnabled()).toBe(true);
    for (const text of ['850.', '850,50', '850.505']) {
      await amount.fill(text);
      expect(await amount.inputValue()).toBe(text);
      expect(await approve.isDisabled(), text).toBe(true);
    }
    await platform.client.runs.cancelRun({ requestId: 'incomplete-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('cannot be approved while the text of an argument is not JSON (PE-2, SV-5)', async () => {
    const { page, context, problems } = await open();
    const runId = await platform.startRefund('not-json', 1200);
    await changeAnswers(page, /GetApproval/, GetApprovalResponseSchema, ({ approval }) => {
      const kind = approval?.action?.kind;
      if (approval === undefined || kind?.case !== 'tool') return;
      kind.value.argumentsJson = '{"command":["bash","-lc","rm -rf ~/cache"]}';
      approval.editableArguments = [create(EditableArgumentSchema, { argument: 'command' })];
      approval.readerRights = create(ReaderRightsSchema, { mayApprove: true, mayEdit: true });
    });
    await page.goto(await platform.approvalOf(runId));
    const command = page.getByLabel('command');
    const approve = page.getByRole('button', { name: /^Approve/ });
    expect(await approve.textContent()).toBe('Approve');
    await command.fill('["bash"');
    expect(await approve.isDisabled()).toBe(true);
    await page.getByText('This is not JSON.').waitFor();
    expect(await page.getByRole('button', { name: 'Reject' }).isEnabled()).toBe(true);
    await command.fill('["bash"]');
    expect(await approve.textContent()).toBe('Approve with changes');
    expect(await approve.isEnabled()).toBe(true);
    await platform.client.runs.cancelRun({ requestId: 'not-json-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('are not shown as an empty list while the stream is not connected (PE-2)', async () => {
    const { page, context, problems } = await open();
    await page.route(/WatchApprovals/, (route) => route.abort());
    await page.goto('/approvals');
    await page.getByText('connecting', { exact: true }).waitFor();
    expect(await page.getByText('Nothing waits for you').count()).toBe(0);
    await page.getByLabel('Loading').waitFor();
    expect(await page.getByText(/Waiting \(/).count()).toBe(0);
    await page.unroute(/WatchApprovals/);
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByText('Nothing waits for you').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('stay listed after the stream was lost, as a list that may be out of date (PE-2)', async () => {
    const { page, context, problems } = await open();
    const runId = await platform.startRefund('lost-stream', 1200);
    const approvalId = (await platform.approvalOf(runId)).split('/').at(-1) ?? '';
    const { approval } = await platform.client.approvals.getApproval({ approvalId });
    const message = create(WatchApprovalsResponseSchema, approval && { approval });
    // A stream of one approval that is cut off: the message that ends a stream is missing.
    const cutOff = frame(0, toBinary(WatchApprovalsResponseSchema, message));
    let attempts = 0;
    await page.route(/WatchApprovals/, (route) => {
      attempts += 1;
      return attempts === 1
        ? route.fulfill({ contentType: 'application/connect+proto', body: cutOff })
        : route.abort();
    });
    await page.goto('/approvals');
    await page.getByText('This list may be out of date').waitFor();
    await expect.poll(() => attempts).toBeGreaterThan(2);
    expect(await page.getByRole('link', { name: /issue_refund/ }).count()).toBe(1);
    await page.unroute(/WatchApprovals/);
    await page.getByText('live', { exact: true }).waitFor();
    expect(await page.getByText('This list may be out of date').count()).toBe(0);
    expect(await page.getByRole('link', { name: /issue_refund/ }).count()).toBe(1);
    await platform.client.runs.cancelRun({ requestId: 'lost-stream-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });

  it('show the error that ended their stream, as runs do, and are not live (PE-2)', async () => {
    const { page, context, problems } = await open();
    const runId = await platform.startRefund('failed-stream', 1200);
    const end = Buffer.from('{"error":{"code":"internal","message":"The stream failed."}}');
    await page.route(/Watch(Approvals|Runs?)$/, (route) =>
      route.fulfill({ contentType: 'application/connect+proto', body: frame(2, end) }),
    );
    for (const path of ['/approvals', '/runs', `/runs/${runId}`]) {
      await page.goto(path);
      await page.getByRole('alert').getByText('The stream failed.').waitFor();
      await page.getByText('disconnected', { exact: true }).waitFor();
      expect(await page.getByText('live', { exact: true }).count(), path).toBe(0);
    }
    await platform.client.runs.cancelRun({ requestId: 'failed-stream-end', runId });
    expect(problems).toEqual([]);
    await context.close();
  });
});

/** A message of a Connect stream; the flag 2 marks the message that ends the stream. */
function frame(flags: number, data: Uint8Array): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(data.length, 1);
  return Buffer.concat([header, data]);
}
