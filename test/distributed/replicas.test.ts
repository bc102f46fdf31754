import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { newId } from '@writ/kernel';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const PATIENT = { timeout: 60_000, interval: 100 };
const RUNS = 6;

const REFUNDED_ONCE = { status: RunStatus.OK, refunds: 1 };

describe.skipIf(!isDistributedPlatformAvailable())('two replicas of each service', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    // A short lease lets another worker take over quickly.
    platform = await startDistributedPlatform({ env: { WRIT_WORKER_LEASE_TTL: '2s' } });
  });
  afterAll(() => platform?.close());

  async function start(via: number): Promise<string> {
    const { run } = await (platform.clients[via] ?? platform.client).runs.startRun({
      requestId: newId('req'),
      agent: 'refund-worker',
      goal: 'Refund it.',
      model: 'sim-auto-1000',
    });
    return run?.runId ?? '';
  }

  /** Waits for the end of a run at one supervisor; returns its status and the number of refunds. */
  async function outcomeOf(runId: string, via: number) {
    const { runs } = platform.clients[via] ?? platform.client;
    const status = await vi.waitFor(async () => {
      const { run } = await runs.getRun({ runId });
      expect(run?.result).toBeDefined();
      return run?.result?.status;
    }, PATIENT);
    const refunds = readLedger(platform.dataDir).refunds.filter(({ run_id: id }) => id === runId);
    return { status, refunds: refunds.length };
  }

  /** The event names of a run's timeline. */
  async function timeline(runId: string, via: number): Promise<string[]> {
    const names = new Map<number, string>(
      Object.entries(HookEventType).map(([name, type]) => [type, name]),
    );
    const events: string[] = [];
    const { runs } = platform.clients[via] ?? platform.client;
    // A watch ends with the result; later events need another watch.
    for (let seen = 0n, before = -1n; seen > before; ) {
      before = seen;
      for await (const { event } of runs.watchRun({ runId, afterSequence: seen })) {
        seen = event?.sequence ?? seen;
        if (event?.entry.case === 'hook') events.push(names.get(event.entry.value.type) ?? '');
      }
    }
    return events;
  }

  it.each([0, 1])(
    'run the refund desk, and supervisor %i has the events of both replicas (HK-1, HK-2, SYS-5)',
    async (via) => {
      const runId = await start(1 - via);
      expect(await outcomeOf(runId, via)).toEqual(REFUNDED_ONCE);
      await vi.waitFor(async () => {
        const events = await timeline(runId, via);
        const count = (name: string) => events.filter((event) => event === name).length;
        expect([count('RUN_START'), count('RUN_END')]).toEqual([1, 1]);
        for (const kind of ['STEP', 'LLM', 'TOOL']) {
          expect([kind, count(`${kind}_START`)]).toEqual([kind, count(`${kind}_END`)]);
          expect(count(`${kind}_END`)).toBeGreaterThan(1);
        }
      }, PATIENT);
    },
  );

  it.each([0, 1])(
    'complete their runs when replica %i of every service is killed (RT-1, RT-2, RT-3, SYS-4, SYS-5)',
    async (killed) => {
      const remaining = 1 - killed;
      const runIds = await Promise.all(Array.from({ length: RUNS }, () => start(remaining)));
      const replicas = platform.replicas.filter(({ name }) => name.endsWith(`-${killed}`));
      expect(replicas).toHaveLength(5);
      await Promise.all(replicas.map((replica) => replica.kill()));
      for (const runId of runIds) expect(await outcomeOf(runId, remaining)).toEqual(REFUNDED_ONCE);
      await Promise.all(replicas.map((replica) => replica.start()));
      expect(await outcomeOf(await start(killed), killed)).toEqual(REFUNDED_ONCE);
    },
  );

  it('exit cleanly on SIGTERM while the other replicas continue (SYS-4, SYS-5)', async () => {
    const runIds = await Promise.all(Array.from({ length: RUNS }, () => start(0)));
    const replicas = platform.replicas.filter(({ name }) => name.endsWith('-1'));
    const codes = await Promise.all(replicas.map((replica) => replica.stop()));
    expect(codes).toEqual([0, 0, 0, 0, 0]);
    for (const runId of runIds) expect(await outcomeOf(runId, 0)).toEqual(REFUNDED_ONCE);
    await Promise.all(replicas.map((replica) => replica.start()));
  });
});
