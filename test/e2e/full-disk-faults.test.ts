import { SERVICE_NAMES } from '@writ/identity';
import { isWritError, newId } from '@writ/kernel';
import { isSmallDiskAvailable, openSmallDisk, type SmallDisk } from '@writ/testing/faults';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StepsHarness } from '../load/steps/steps-harness.ts';

const DISK_MB = 64;
const STEPS = 2;
/** Runs that are acknowledged before the disk is full. */
const RUNS = 8;
/** Maximum number of starts; the disk is full, and a start is rejected, before this number is reached. */
const MAX_STARTS = 2_000;

let disk: SmallDisk;
let platform: StepsHarness;

describe.runIf(isSmallDiskAvailable())('a platform on a full disk', () => {
  beforeEach(async () => {
    disk = openSmallDisk('/tmp', DISK_MB);
    platform = await StepsHarness.start({ counts: [STEPS], base: disk.folder });
  });

  afterEach(async () => {
    disk.free();
    await platform.close();
    disk.close();
  });

  it('rejects starts, logs the full disk at most once a minute per service, and continues when space is freed (SYS-3, SYS-4)', async () => {
    const startedAt = performance.now();
    const acknowledged = [await platform.startRun(STEPS, 'Count.')];
    disk.fill();
    const failure = await startUntilFull(acknowledged);
    expect(failure).toMatchObject({
      kind: 'resource_exhausted',
      reason: 'STORE_DISK_FULL',
      message: expect.stringMatching(/^disk full: .* cannot grow/),
    });
    const reports = () =>
      platform.log.filter((line) => line.includes('disk full: the database rejects')).length;
    // The log line may arrive after the response.
    await vi.waitFor(() => expect(reports()).toBeGreaterThan(0));
    const minutes = Math.ceil((performance.now() - startedAt) / 60_000);
    expect(reports()).toBeLessThanOrEqual(SERVICE_NAMES.length * minutes);
    disk.free();
    for (const runId of acknowledged) await platform.untilEnded(runId, STEPS);
    await platform.count(STEPS, 'Count with space.');
  });

  it('has lost no acknowledged run after kill -9 (SYS-4, RT-3)', async () => {
    const starts = Array.from({ length: RUNS }, () => platform.startRun(STEPS, 'Count.'));
    const acknowledged = await Promise.all(starts);
    disk.fill();
    await startUntilFull(acknowledged);
    await platform.kill();
    disk.free();
    await platform.startPlatform();
    for (const runId of acknowledged) await platform.untilEnded(runId, STEPS);
    await platform.count(STEPS, 'Count with space.');
  });
});

/** Starts runs until one is rejected because of the disk; returns the error. */
async function startUntilFull(acknowledged: string[]): Promise<unknown> {
  for (let starts = 0; starts < MAX_STARTS; starts += 1) {
    const request = { requestId: newId('req'), agent: `counter-${STEPS}`, goal: 'Count.' };
    try {
      const { run } = await platform.client.runs.startRun(request);
      acknowledged.push(run?.runId ?? '');
    } catch (error) {
      if (isWritError(error) && error.reason !== 'START_QUEUE_FULL') return error;
    }
  }
  throw new Error('No start was rejected.');
}
