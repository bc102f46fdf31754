import { execFile } from 'node:child_process';
import { join } from 'node:path';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { CORE_SERVICES } from '@writ/identity';
import { newId } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  type Replica,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

const PATIENT = { timeout: 60_000, interval: 200 };
const HEALTH_PROGRAM = join(import.meta.dirname, '../../deploy/docker/health.ts');
const EVERY = {
  SERVING: CORE_SERVICES.map(() => true),
  NOT_SERVING: CORE_SERVICES.map(() => false),
};

describe.skipIf(!isDistributedPlatformAvailable())('health without a database', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    platform = await startDistributedPlatform({ replicas: 1 });
  });
  afterAll(() => platform?.close());

  /** Whether the probe of the chart succeeds for a replica: readiness, or liveness with `alive`. */
  const probe = ({ service, address }: Replica, ...args: readonly string[]): Promise<boolean> =>
    new Promise((resolve) => {
      const variable = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_PORT`;
      const env = { ...process.env, [variable]: address.split(':')[1] ?? '' };
      execFile(process.execPath, [HEALTH_PROGRAM, service, ...args], { env }, (error) =>
        resolve(error === null),
      );
    });
  const ready = () => Promise.all(platform.replicas.map((replica) => probe(replica)));
  const alive = () => Promise.all(platform.replicas.map((replica) => probe(replica, 'alive')));
  const edgeHealth = async () => {
    const [baseUrl = ''] = platform.edgeUrls;
    const telemetry = createTelemetry({ service: 'probe', logLevel: 'silent' });
    const address = new URL(baseUrl).host;
    const client = createRpcClient(Health, { address, telemetry, health: 'responding' });
    try {
      return (await client.check({})).status;
    } finally {
      client.close();
    }
  };
  const becomes = (state: keyof typeof EVERY) =>
    vi.waitFor(async () => expect(await ready()).toEqual(EVERY[state]), PATIENT);

  it.each([
    ['killed', () => platform.postgres.kill(), () => platform.postgres.start()],
    [
      'silent',
      async () => platform.postgres.signal('SIGSTOP'),
      async () => platform.postgres.signal('SIGCONT'),
    ],
  ] as const)(
    'reports NOT_SERVING on every service while PostgreSQL is %s, stays alive, and serves again (SYS-4)',
    async (_, end, recover) => {
      await becomes('SERVING');
      expect(await edgeHealth()).toBe(ServingStatus.SERVING);
      let isDown = true;
      onTestFinished(async () => {
        if (isDown) await recover();
      });
      await end();
      await becomes('NOT_SERVING');
      expect(await edgeHealth()).toBe(ServingStatus.NOT_SERVING);
      expect(await alive()).toEqual(EVERY.SERVING);
      await recover();
      isDown = false;
      await becomes('SERVING');
      expect(await edgeHealth()).toBe(ServingStatus.SERVING);
      expect(platform.replicas.flatMap(({ crashes }) => crashes)).toEqual([]);
      const { runs } = platform.client;
      const request = {
        requestId: newId('req'),
        agent: 'refund-worker',
        goal: 'Refund it.',
        model: 'sim-auto-1000',
      };
      const { run } = await vi.waitFor(() => runs.startRun(request), PATIENT);
      const runId = run?.runId ?? '';
      await vi.waitFor(
        async () => expect((await runs.getRun({ runId })).run?.result?.stopReason).toBe('success'),
        PATIENT,
      );
    },
    120_000,
  );
});
