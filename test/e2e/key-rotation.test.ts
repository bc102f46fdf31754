import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readLedger } from '@writ/example-refund-desk/ledger';
import type { ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Services that sign during a run: writs and tokens, receipts, slot grants. */
const SIGNERS = [
  'supervisor',
  'tool-gateway',
  'spawn-budget',
] as const satisfies readonly ServiceName[];

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform({ env: { WRIT_KEY_ROTATION: '1s' } });
});
afterAll(() => test.close());

function keysOf(service: ServiceName): number {
  const file = join(test.dataDir, 'keys', `${service}.jwks.json`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { keys: unknown[] }).keys.length;
}

async function refundStopReason(): Promise<string | undefined> {
  const { runs } = test.client;
  const { run } = await runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: 'Refund it.',
    model: 'sim-auto-1000',
  });
  const runId = run?.runId ?? '';
  await Array.fromAsync(runs.watchRun({ runId }));
  return (await runs.getRun({ runId })).run?.result?.stopReason;
}

describe('signing keys that are rotated every second', () => {
  it('keep signatures of the previous key valid, so that every run succeeds (SV-6, TG-1, TG-8)', async () => {
    let runs = 0;
    while (SIGNERS.some((service) => keysOf(service) < 3)) {
      expect(await refundStopReason()).toBe('success');
      runs += 1;
    }
    expect(readLedger(test.dataDir).refunds).toHaveLength(runs);
  });
});
