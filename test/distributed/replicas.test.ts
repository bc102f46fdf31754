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
const SOME = 6;

describe.skipIf(!isDistributedPlatformAvailable())('two replicas of each service', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    // What a killed worker held is taken over soon.
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

  /** Waits until a run is over, and well, as one supervisor sees it. */
  async function endsWell(runId: string, via: number): Promise<void> {
    const { runs } = platform.clients[via] ?? platform.client;
    await vi.waitFor(async () => {
      const { run } = await runs.getRun({ runId });
      expect(run?.result?.status, run?.result?.stopReason).toBe(RunStatus.OK);
    }, PATIENT);
    const { refunds } = readLedger(platform.dataDir);
    expect(refunds.filter(({ run_id: id }) => id === runId)).toHaveLength(1);
  }

  /** The events of a run's timeline, by name. */
  async function told(runId: string, via: number): Promise<string[]> {
    const names = new Map<number, string>(
      Object.entries(HookEventType).map(([name, type]) => [type, name]),
    );
    const events: string[] = [];
    const { runs } = platform.clients[via] ?? platform.client;
    // A watch ends with the result; what came later is told from there.
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
    'run the refund desk, and supervisor %i knows what each of them tells (HK-1, HK-2, SYS-5)',
    async (via) => {
      const runId = await start(1 - via);
      await endsWell(runId, via);
      await vi.waitFor(async () => {
        const events = await told(runId, via);
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
    'finish their runs when replica %i of every service is killed (RT-1, RT-2, RT-3, SYS-4, SYS-5)',
    async (killed) => {
      const there = 1 - killed;
      const runIds = await Promise.all(Array.from({ length: SOME }, () => start(there)));
      const replicas = platform.replicas.filter(({ name }) => name.endsWith(`-${killed}`));
      expect(replicas).toHaveLength(5);
      await Promise.all(replicas.map((replica) => replica.kill()));
      for (const runId of runIds) await endsWell(runId, there);
      await Promise.all(replicas.map((replica) => replica.start()));
      await endsWell(await start(killed), killed);
    },
  );

  it('end in good order on SIGTERM, while the others go on (SYS-4, SYS-5)', async () => {
    const runIds = await Promise.all(Array.from({ length: SOME }, () => start(0)));
    const replicas = platform.replicas.filter(({ name }) => name.endsWith('-1'));
    const codes = await Promise.all(replicas.map((replica) => replica.stop()));
    expect(codes).toEqual([0, 0, 0, 0, 0]);
    for (const runId of runIds) await endsWell(runId, 0);
    await Promise.all(replicas.map((replica) => replica.start()));
  });
});
