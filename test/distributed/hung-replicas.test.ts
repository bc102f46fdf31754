import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { startFaultProxy } from '@writ/testing/faults';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

const PATIENT = { timeout: 60_000, interval: 100 };
/** Time in which callers miss a replica that hears nothing any more, and are rid of it. */
const MISSED_MS = 8_000;
/** No call takes so long afterwards; before, its time limit was 20 s. */
const QUICK_MS = 5_000;
const LIMIT_MS = 20_000;
const CALLS = 40;
/** So many at once that both workers take some. */
const RUNS = 4;
/** Enough to show that a replica that was taken back does harm to none. */
const RUNS_AFTERWARDS = 2;

const LEFT = 'replica ejected from load balancing';
const BACK = 'replica readmitted to load balancing';

describe.skipIf(!isDistributedPlatformAvailable())('replicas that hang', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    platform = await startDistributedPlatform({
      // What a frozen worker held is taken over soon.
      env: { WRIT_WORKER_LEASE_TTL: '2s' },
    });
  });
  afterAll(() => platform?.close());

  const replicasOf = (service: ServiceName) =>
    platform.replicas.filter((replica) => replica.service === service);

  async function runsEndWell(count: number): Promise<void> {
    const { runs } = platform.client;
    const started = await Promise.all(
      Array.from({ length: count }, () =>
        runs.startRun({
          requestId: newId('req'),
          agent: 'refund-worker',
          goal: 'Refund it.',
          model: 'sim-auto-1000',
        }),
      ),
    );
    for (const { run: begun } of started) {
      await vi.waitFor(async () => {
        const { run } = await runs.getRun({ runId: begun?.runId ?? '' });
        expect(run?.result?.status, run?.result?.stopReason).toBe(RunStatus.OK);
      }, PATIENT);
    }
  }

  /** Calls a service over and over, by way of all its replicas. */
  function caller(
    service: ServiceName,
    addresses = replicasOf(service).map(({ address }) => address),
  ) {
    const lines: string[] = [];
    const telemetry = createTelemetry({
      service: 'caller',
      logStream: { write: (line: string) => void lines.push(line) },
    });
    const address = addresses.join(',');
    const client = createRpcClient(KeyService, { address, telemetry, timeoutMs: LIMIT_MS });
    onTestFinished(() => client.close());
    const call = async () => {
      const startedAt = performance.now();
      expect((await client.getKeys({}, { retry: true })).service).toBe(service);
      return performance.now() - startedAt;
    };
    /** Waits until the log says so of a replica. */
    const tells = (what: string, { address: replica }: { readonly address: string }) =>
      vi.waitFor(() => {
        const about = lines.filter((line) => line.includes(`"${replica}"`));
        expect(about.at(-1)).toContain(what);
      }, PATIENT);
    return { call, tells };
  }

  it.each(SERVICE_NAMES)(
    'a frozen replica of %s is missed by its callers, and costs no call (SYS-4, SYS-5)',
    async (service) => {
      const { call, tells } = caller(service);
      const [frozen] = replicasOf(service);
      if (frozen === undefined) throw new Error(`${service} has no replica.`);
      for (let each = 0; each < CALLS; each += 1) await call();
      frozen.pause();
      const first = await Promise.all(Array.from({ length: CALLS }, call));
      expect(Math.max(...first)).toBeLessThan(MISSED_MS + QUICK_MS);
      await tells(LEFT, frozen);
      for (let each = 0; each < CALLS; each += 1) expect(await call()).toBeLessThan(QUICK_MS);
      if (service !== 'supervisor') await runsEndWell(RUNS);
      frozen.resume();
      await tells(BACK, frozen);
      await runsEndWell(RUNS_AFTERWARDS);
    },
  );

  it.each(['stalled', 'blackhole'] as const)(
    'a wire that is %s costs no call, and is used again when it is mended (SYS-4, SYS-5)',
    async (fault) => {
      const [behind, other] = replicasOf('execution-meter');
      const wire = await startFaultProxy(behind?.address ?? '');
      onTestFinished(() => wire.close());
      const { call, tells } = caller('execution-meter', [wire.address, other?.address ?? '']);
      for (let each = 0; each < CALLS; each += 1) await call();
      wire.fail(fault);
      platform.fail('agent-worker', 'execution-meter-1', fault);
      const first = await Promise.all(Array.from({ length: CALLS }, call));
      expect(Math.max(...first)).toBeLessThan(MISSED_MS + QUICK_MS);
      await tells(LEFT, wire);
      for (let each = 0; each < CALLS; each += 1) expect(await call()).toBeLessThan(QUICK_MS);
      await runsEndWell(RUNS);
      wire.fail('none');
      platform.heal();
      await tells(BACK, wire);
      await runsEndWell(RUNS_AFTERWARDS);
    },
  );
});
