import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { formatUsd, newId } from '@writ/kernel';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  natsPassword,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

const WRIT = resolve(import.meta.dirname, '../../clients/cli/src/main.ts');
const PATIENT = { timeout: 60_000, interval: 100 };

describe.skipIf(!isDistributedPlatformAvailable())('writ observe over NATS', () => {
  const logs = mkdtempSync(join(tmpdir(), 'writ-observe-'));
  let platform: DistributedPlatform;

  beforeAll(async () => {
    platform = await startDistributedPlatform({ replicas: 1 });
  });
  afterAll(async () => {
    await platform?.close();
    rmSync(logs, { recursive: true, force: true });
  });

  /** Starts the command; it is killed after the test. */
  const observe = (): { child: ChildProcess; lines: string[] } => {
    const child = spawn(process.execPath, [WRIT, 'observe', '--logs', logs], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        WRIT_NATS_URL: platform.nats.address,
        WRIT_NATS_PASSWORD: natsPassword('observer'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface(stream).on('line', (line) => lines.push(line));
    return { child, lines };
  };

  /** Runs the refund desk to its end; returns the run and the line that `writ observe` prints for it. */
  const runOnce = async () => {
    const { runs } = platform.client;
    const { run } = await runs.startRun({
      requestId: newId('req'),
      agent: 'refund-worker',
      goal: 'Refund it.',
      model: 'sim-auto-1000',
    });
    const runId = run?.runId ?? '';
    const result = await vi.waitFor(async () => {
      const ended = (await runs.getRun({ runId })).run?.result;
      expect(ended?.stopReason).toBe('success');
      return ended;
    }, PATIENT);
    const { usage, turns = 0, costNanoUsd = 0n } = result?.usage ?? {};
    const tokens = `${usage?.inputTokens} + ${usage?.outputTokens} tokens`;
    const cost = `${turns} model calls  ${tokens}  ${formatUsd(costNanoUsd)} USD`;
    return { runId, line: `${runId}  ${run?.agent?.instance}  success  ${cost}` };
  };

  const logOf = (runId: string): { event: string; event_id: string }[] =>
    readFileSync(join(logs, `${runId}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));

  it('prints the cost of a run as recorded in the ledger, and logs its events (HK-3)', async () => {
    const { child, lines } = observe();
    const { runId, line } = await runOnce();
    await vi.waitFor(() => expect(lines).toContain(line), PATIENT);
    const timeline = await Array.fromAsync(platform.client.runs.watchRun({ runId }));
    const ids = timeline.flatMap(({ event }) =>
      event?.entry.case === 'hook' ? [event.entry.value.eventId] : [],
    );
    await vi.waitFor(() => {
      expect(
        logOf(runId)
          .map(({ event_id }) => event_id)
          .sort(),
      ).toEqual(ids.sort());
    }, PATIENT);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('reports the runs that ended while it was not running (HK-3)', async () => {
    const { runId, line } = await runOnce();
    const { lines } = observe();
    await vi.waitFor(() => expect(lines).toContain(line), PATIENT);
    expect(logOf(runId).map(({ event }) => event)).toContain('RUN_START');
  });
});
