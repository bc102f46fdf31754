import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { newId } from '@writ/kernel';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const PATIENT = { timeout: 60_000, interval: 100 };

/** A worker of the default pool, which serves all tenants without their own pool. */
const SHARED = 'agent-worker-0';
/** The workers of the tenant `rivals`; the second worker is configured for another tenant by mistake. */
const OWN = 'agent-worker-1';
const MISTAKEN = 'agent-worker-2';

describe.skipIf(!isDistributedPlatformAvailable())('pools of worker processes', () => {
  let platform: DistributedPlatform;
  let rivals: WritClient;

  beforeAll(async () => {
    platform = await startDistributedPlatform({
      replicas: {
        supervisor: 1,
        'spawn-budget': 1,
        'execution-meter': 1,
        'tool-gateway': 1,
        'agent-worker': 3,
      },
      tenantWorkers: { rivals: [OWN, MISTAKEN] },
      envOf: ({ name }): Record<string, string> =>
        name === MISTAKEN ? { WRIT_WORKER_TENANTS: 'others' } : {},
    });
    const keys = openApiKeys({ file: join(platform.dataDir, API_KEYS_FILE) });
    const roles = ['caller', 'approver'] as const;
    const apiKey = await keys.create({ tenant: 'rivals', subject: 'eve', roles: [...roles] });
    const [baseUrl = ''] = platform.edgeUrls;
    rivals = createWritClient({ baseUrl, apiKey });
  });
  afterAll(() => platform?.close());

  async function start({ runs }: WritClient): Promise<string> {
    const { run } = await runs.startRun({
      requestId: newId('req'),
      agent: 'refund-worker',
      goal: 'Refund it.',
      model: 'sim-auto-1000',
    });
    return run?.runId ?? '';
  }

  /** Waits until a run has succeeded with one refund. */
  async function untilRefunded({ runs }: WritClient, runId: string): Promise<void> {
    await vi.waitFor(async () => {
      const { run } = await runs.getRun({ runId });
      expect(run?.result?.status).toBe(RunStatus.OK);
    }, PATIENT);
    const refunds = readLedger(platform.dataDir).refunds.filter(({ run_id: id }) => id === runId);
    expect(refunds).toHaveLength(1);
  }

  /** Returns the ids of the runs in the database of the workers that use `schema`. */
  async function runsIn(schema: string): Promise<unknown[]> {
    const rows = await platform.rows(
      'agent-worker',
      `select distinct run_id from ${schema}.agents`,
    );
    return rows.map(({ run_id }) => run_id);
  }

  it('execute the runs of their tenants; a run waits until a worker of its pool is available (SYS-6)', async () => {
    await platform.replica(OWN).kill();
    const waiting = await start(rivals);
    const other = await start(platform.client);
    await untilRefunded(platform.client, other);
    // The remaining worker of the pool rejects the delivery, and the supervisor retries it.
    await vi.waitFor(() => {
      const log = platform.replica('supervisor-0').log.join('\n');
      expect(log).toContain('TENANT_NOT_SERVED');
    }, PATIENT);
    expect((await rivals.runs.getRun({ runId: waiting })).run?.state).toBe(RunState.PENDING);
    expect(await runsIn('agent_worker_rivals')).toEqual([]);
    await platform.replica(OWN).start();
    await untilRefunded(rivals, waiting);
    expect(await runsIn('agent_worker_rivals')).toEqual([waiting]);
    expect(await runsIn('agent_worker')).toEqual([other]);
  });

  it('resume their runs after kill -9; workers of other pools do not resume them (SYS-6, RT-1)', async () => {
    const runId = await start(rivals);
    await vi.waitFor(
      async () => expect(await runsIn('agent_worker_rivals')).toContain(runId),
      PATIENT,
    );
    await platform.replica(OWN).kill();
    const other = await start(platform.client);
    await untilRefunded(platform.client, other);
    await platform.replica(OWN).start();
    await untilRefunded(rivals, runId);
    expect(await runsIn('agent_worker')).not.toContain(runId);
    expect(platform.replica(SHARED).log.join('\n')).not.toContain(runId);
  });
});
