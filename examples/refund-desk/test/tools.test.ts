import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JsonObject, systemClock, type ToolCall, type Tools } from '@writ/kernel';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readLedger } from '../src/ledger.ts';
import { createTools } from '../src/tools.ts';

let dataDir: string;
let tools: Tools;

const open = () => createTools({ dataDir, variables: {}, clock: systemClock });

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-refund-'));
  tools = await open();
});

afterEach(async () => {
  await tools[Symbol.asyncDispose]?.();
  rmSync(dataDir, { recursive: true, force: true });
});

function callOf(idempotencyKey: string, signal = new AbortController().signal): ToolCall {
  return {
    idempotencyKey,
    tenant: 'acme',
    runId: 'run_1',
    agentName: 'refund-worker',
    callId: 'op-1',
    signal,
  };
}

async function run(tool: string, args: JsonObject, key = 'idem_1'): Promise<JsonObject> {
  return (await tools[tool]?.(args, callOf(key))) ?? {};
}

const refund = (over: JsonObject = {}, key = 'idem_1') =>
  run('issue_refund', { user_id: 42, amount_usd: 800, reason: ' Paid twice. ', ...over }, key);

describe('get_refund_context', () => {
  it('returns the customer, the last payment and the automatic limit', async () => {
    expect(await run('get_refund_context', { user_id: 42 })).toEqual({
      user: { id: 42, name: 'Anna', country: 'US', tier: 'enterprise' },
      billing: {
        plan: 'annual_enterprise',
        currency: 'USD',
        last_charge_usd: 1200,
        days_since_payment: 10,
      },
      policy_hint: { auto_refund_limit_usd: 1000, refund_window_days: 14 },
    });
    expect(await run('get_refund_context', { user_id: 7 })).toMatchObject({
      user: { name: 'Max', tier: 'pro' },
      billing: { plan: 'pro_monthly', last_charge_usd: 49, days_since_payment: 35 },
    });
  });

  it('reports an unknown customer', async () => {
    expect(await run('get_refund_context', { user_id: 1 })).toEqual({
      error: 'context_not_found_for_user:1',
    });
  });
});

describe('issue_refund', () => {
  it('records the refund in whole cents before it returns', async () => {
    const result = await refund({ amount_usd: 799.99 });
    expect(result).toEqual({
      status: 'ok',
      refund: {
        user_id: 42,
        currency: 'USD',
        amount_usd: 799.99,
        reason: 'Paid twice.',
        transaction_id: expect.stringMatching(/^rf_42_[0-9a-f]{12}$/),
      },
    });
    expect(readLedger(dataDir).refunds).toMatchObject([
      { idempotency_key: 'idem_1', user_id: 42, amount_cents: 79_999, run_id: 'run_1' },
    ]);
  });

  it('pays once per key, even after a restart, and returns the first result (TG-5)', async () => {
    const first = await refund();
    expect(await refund({ amount_usd: 5 })).toEqual(first);
    await tools[Symbol.asyncDispose]?.();
    tools = await open();
    expect(await refund()).toEqual(first);
    expect(readLedger(dataDir).refunds).toHaveLength(1);
    const other = await refund({}, 'idem_2');
    expect(other).not.toEqual(first);
    expect(readLedger(dataDir).refunds).toHaveLength(2);
  });

  it.each([
    ['an unknown customer', { user_id: 1 }, { error: 'refund_user_not_found:1' }],
    ['an amount of zero', { amount_usd: 0 }, { error: 'refund_amount_must_be_positive' }],
    ['a negative amount', { amount_usd: -5 }, { error: 'refund_amount_must_be_positive' }],
    ['less than a cent', { amount_usd: 0.004 }, { error: 'refund_amount_not_in_whole_cents' }],
    [
      'a fraction of a cent',
      { amount_usd: 700.555 },
      { error: 'refund_amount_not_in_whole_cents' },
    ],
    [
      'more than the last charge',
      { amount_usd: 1200.01 },
      { error: 'refund_exceeds_last_charge', max_refund_usd: 1200 },
    ],
  ])('rejects %s and records no refund', async (_, over, expected) => {
    expect(await refund(over)).toEqual({ status: 'error', ...expected });
    expect(readLedger(dataDir).refunds).toEqual([]);
  });

  it('never pays more or less than the amount of the call (SV-5)', async () => {
    const amount = fc.oneof(
      fc.double({ noNaN: true, min: 0, max: 1200 }),
      fc.integer({ min: 1, max: 1_200_000 }).map((mills) => mills / 1000),
    );
    await fc.assert(
      fc.asyncProperty(amount, fc.uuid(), async (amount_usd, key) => {
        const { status } = await refund({ amount_usd }, key);
        const booked = readLedger(dataDir).refunds.find((one) => one.idempotency_key === key);
        expect(booked === undefined).toBe(status === 'error');
        if (booked !== undefined) expect(booked.amount_cents / 100).toBe(amount_usd);
      }),
      { numRuns: 60 },
    );
  });

  it('pays nothing after a cancellation and throws ToolFailure (SUP-8)', async () => {
    const args = { user_id: 42, amount_usd: 800, reason: 'Paid twice.' };
    const stopped = tools.issue_refund?.(args, callOf('idem_1', AbortSignal.abort()));
    await expect(stopped).rejects.toMatchObject({ name: 'ToolFailure' });
    expect(readLedger(dataDir).refunds).toEqual([]);
  });
});

describe('send_refund_email', () => {
  it('queues one email per key', async () => {
    const args = { user_id: 7, amount_usd: 49, message: 'It is on its way.' };
    const first = await run('send_refund_email', args);
    expect(first).toEqual({
      status: 'ok',
      email: {
        to: 'max@example.com',
        template: 'refund_confirmation_v2',
        amount_usd: 49,
        message: 'It is on its way.',
        email_id: expect.stringMatching(/^em_7_[0-9a-f]{12}$/),
      },
    });
    expect(await run('send_refund_email', args)).toEqual(first);
    expect(readLedger(dataDir).emails).toMatchObject([
      { recipient: 'max@example.com', amount_cents: 4_900 },
    ]);
    expect(await run('send_refund_email', { ...args, user_id: 1 }, 'idem_2')).toEqual({
      status: 'error',
      error: 'email_user_not_found:1',
    });
  });
});
