import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { CORE_SERVICES, type CoreService } from '@writ/identity';
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
/** Deadline of a call, and the time in which all calls after an ejection must be answered. */
const LIMIT_MS = 20_000;
const CALLS = 40;
/** Number of concurrent runs, high enough that both workers claim runs. */
const RUNS = 4;
/** Number of runs after the readmission of a replica, to check that the replica works. */
const RUNS_AFTERWARDS = 2;

const EJECTED = 'replica ejected from load balancing';
const READMITTED = 'replica readmitted to load balancing';

describe.skipIf(!isDistributedPlatformAvailable())('replicas that hang', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    platform = await startDistributedPlatform({
      // A short lease lets another worker take over quickly.
      env: { WRIT_WORKER_LEASE_TTL: '2s' },
    });
  });
  afterAll(() => platform?.close());

  const replicasOf = (service: CoreService) =>
    platform.replicas.filter((replica) => replica.service === service);

  /** Runs the refund desk `count` times; returns the stop reason of each run. */
  async function runAll(count: number): Promise<(string | undefined)[]> {
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
    const ended = started.map(({ run: begun }) =>
      vi.waitFor(async () => {
        const { run } = await runs.getRun({ runId: begun?.runId ?? '' });
        expect(run?.result).toBeDefined();
        return run?.result?.stopReason;
      }, PATIENT),
    );
    return await Promise.all(ended);
  }

  /** A client that calls a service through all its replicas. */
  function caller(
    service: CoreService,
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
    const call = async () => (await client.getKeys({}, { retry: true })).service;
    const callConcurrently = () => Promise.all(Array.from({ length: CALLS }, call));
    /** Makes all calls in sequence; returns the answers and the total time. */
    const callInSequence = async () => {
      const startedAt = performance.now();
      const answers: string[] = [];
      for (let each = 0; each < CALLS; each += 1) answers.push(await call());
      return { answers, ms: performance.now() - startedAt };
    };
    /** Waits for the log line of a replica; returns the latest one. */
    const logged = (what: string, { address: replica }: { readonly address: string }) =>
      vi.waitFor(() => {
        const last = lines.filter((line) => line.includes(`"${replica}"`)).at(-1);
        expect(last).toContain(what);
        return last;
      }, PATIENT);
    return { callConcurrently, callInSequence, logged };
  }

  it.each(CORE_SERVICES)(
    'ejects a frozen replica of %s without failing a call (SYS-4, SYS-5)',
    async (service) => {
      const { callConcurrently, callInSequence, logged } = caller(service);
      const [frozen] = replicasOf(service);
      if (frozen === undefined) throw new Error(`${service} has no replica.`);
      const answers = Array.from({ length: CALLS }, () => service);
      expect((await callInSequence()).answers).toEqual(answers);
      // A failed test must not leave the replica frozen for the next one.
      onTestFinished(() => frozen.resume());
      frozen.pause();
      expect(await callConcurrently()).toEqual(answers);
      expect(await logged(EJECTED, frozen)).toContain(frozen.address);
      const afterwards = await callInSequence();
      expect(afterwards.answers).toEqual(answers);
      // Half of the calls would wait for a time limit if they still went to the frozen replica.
      expect(afterwards.ms).toBeLessThan(LIMIT_MS);
      if (service !== 'supervisor') expect(await runAll(RUNS)).toEqual(successes(RUNS));
      frozen.resume();
      expect(await logged(READMITTED, frozen)).toContain(frozen.address);
      expect(await runAll(RUNS_AFTERWARDS)).toEqual(successes(RUNS_AFTERWARDS));
    },
  );

  it.each(['stalled', 'blackhole'] as const)(
    'fails no call over a %s connection, and readmits the replica when it recovers (SYS-4, SYS-5)',
    async (fault) => {
      const [proxied, other] = replicasOf('execution-meter');
      const proxy = await startFaultProxy(proxied?.address ?? '');
      onTestFinished(() => proxy.close());
      const { callConcurrently, callInSequence, logged } = caller('execution-meter', [
        proxy.address,
        other?.address ?? '',
      ]);
      const answers = Array.from({ length: CALLS }, () => 'execution-meter');
      expect((await callInSequence()).answers).toEqual(answers);
      onTestFinished(() => platform.heal());
      proxy.fail(fault);
      platform.fail('agent-worker', 'execution-meter-1', fault);
      expect(await callConcurrently()).toEqual(answers);
      expect(await logged(EJECTED, proxy)).toContain(proxy.address);
      const afterwards = await callInSequence();
      expect(afterwards.answers).toEqual(answers);
      expect(afterwards.ms).toBeLessThan(LIMIT_MS);
      expect(await runAll(RUNS)).toEqual(successes(RUNS));
      proxy.fail('none');
      platform.heal();
      expect(await logged(READMITTED, proxy)).toContain(proxy.address);
      expect(await runAll(RUNS_AFTERWARDS)).toEqual(successes(RUNS_AFTERWARDS));
    },
  );
});

function successes(count: number): string[] {
  return Array.from({ length: count }, () => 'success');
}
