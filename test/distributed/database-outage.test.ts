import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { CORE_SERVICES, SERVICE_NAMES } from '@writ/identity';
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

it.each(SERVICE_NAMES)(
  'names host and port of a PostgreSQL server that does not answer when %s starts, in one line (SYS-3, SYS-4)',
  (service) => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-start-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const own = `WRIT_${service.toUpperCase().replaceAll('-', '_')}`;
    const env = {
      PATH: process.env.PATH,
      WRIT_DATA: folder,
      [`${own}_PORT`]: '0',
      WRIT_EDGE_PORT: '0',
      WRIT_AGENT_PROXY_ENDPOINT_PORT: '0',
      [`${own}_DATABASE_URL`]: 'postgres://writ:hidden@127.0.0.1:1/writ',
    };
    const program = join(import.meta.dirname, `../../services/${service}/src/main.ts`);
    const { status, stderr } = spawnSync(process.execPath, [program], { env, encoding: 'utf8' });
    expect(stderr).toBe(
      `PostgreSQL schema ${service.replaceAll('-', '_')} is unreachable (ECONNREFUSED). The PostgreSQL server is 127.0.0.1:1.\n`,
    );
    expect(status).toBe(1);
  },
);

/**
 * Checks that a replica logs the outage with host and port, without a stack trace and, apart from the change of health,
 * at most once every ten seconds.
 */
function assertBounded({ name, log }: Replica): void {
  const lines = log.filter((line) => line.includes('STORE_UNREACHABLE'));
  expect(lines.join('\n'), name).toMatch(/The PostgreSQL server is 127\.0\.0\.1:\d+\./);
  for (const line of lines) expect(line).not.toMatch(/"stack"|\\n +at /);
  const times = lines
    // Excludes the retries of calls to other services, which log the reason that these services return.
    .filter((line) => line.includes('The PostgreSQL server') && !line.includes('health reports'))
    .map((line) => Date.parse(JSON.parse(line).time));
  for (const [index, time] of times.slice(1).entries())
    expect(time - (times[index] ?? 0), `${name}: ${lines.join('\n')}`).toBeGreaterThan(9_000);
}

describe.skipIf(!isDistributedPlatformAvailable())('health without a database', () => {
  let platform: DistributedPlatform;

  beforeAll(async () => {
    platform = await startDistributedPlatform({ replicas: 1 });
  });
  afterAll(() => platform?.close());

  /** Returns whether the probe of the Helm chart succeeds for a replica: readiness, or liveness with `alive`. */
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
    'is NOT_SERVING on every service while PostgreSQL is %s, with passing liveness probes, and recovers (SYS-4)',
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
      for (const replica of platform.replicas) assertBounded(replica);
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
