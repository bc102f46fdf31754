import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { UnavailableError } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { FakePeers } from './fake-peers.ts';
import { type PersonName, SupervisorUnderTest } from './supervisor-under-test.ts';

const { deliver, cancel, signal } = AgentWorkerService.method;

describe('pools of workers', () => {
  let supervisor: SupervisorUnderTest;
  /** The workers of the tenant rivals. */
  let pool: FakePeers;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({ pooled: true });
    pool = supervisor.pool ?? expect.fail('There is no pool.');
  });
  afterEach(() => supervisor.close());

  async function start(who: PersonName): Promise<string> {
    const request = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };
    return (await supervisor.runs(who).startRun(request)).run?.runId ?? '';
  }

  async function untilState(who: PersonName, runId: string, state: RunState): Promise<void> {
    await vi.waitFor(async () => {
      const { run } = await supervisor.runs(who).getRun({ runId });
      expect(run?.state).toBe(state);
    });
  }

  /** Reads the manifest of an agent as a worker whose token names these tenants. */
  async function readManifest(worker: FakePeers, tenants: readonly string[], of: FakePeers) {
    const [delivery] = of.deliveries.slice(-1);
    const client = createRpcClient(SupervisionService, {
      address: supervisor.service.address,
      telemetry: createTelemetry({ service: 'worker', logLevel: 'silent' }),
      serviceToken: worker.peer('agent-worker').serviceToken('supervisor', { tenants }),
    });
    onTestFinished(() => client.close());
    const agentToken = delivery?.credentials?.supervisorToken ?? '';
    return await client.getManifest({}, { agentToken, epoch: 1n });
  }

  it('receive the runs of their tenants; the runs wait while the pool is down, and no other worker receives them (SYS-6)', async () => {
    const down = () => new UnavailableError('DRAINING', 'The pool is down.');
    pool.fail(deliver, ...Array.from({ length: 8 }, down));
    const waiting = await start('eve');
    const other = await start('anna');
    await untilState('anna', other, RunState.RUNNING);
    await untilState('eve', waiting, RunState.RUNNING);
    expect(pool.requests(deliver).length).toBeGreaterThan(8);
    const runsOf = (workers: FakePeers) =>
      new Set(workers.deliveries.map(({ supervision }) => supervision?.runId));
    expect(runsOf(pool)).toEqual(new Set([waiting]));
    expect(runsOf(supervisor.fakes)).toEqual(new Set([other]));
    await supervisor.runs('eve').cancelRun({ requestId: 'c-1', runId: waiting });
    await untilState('eve', waiting, RunState.CANCELLED);
    expect(pool.requests(cancel)).not.toEqual([]);
    expect(supervisor.fakes.requests(cancel)).toEqual([]);
  });

  it('receive the signals of a halt while other workers are unreachable (SV-9, SYS-6)', async () => {
    supervisor.fakes.answer(signal, () => {
      throw new UnavailableError('UNAVAILABLE', 'The worker is down.');
    });
    // Starts the run of the other tenant first, so that its unreachable worker is signaled first.
    await untilState('anna', await start('anna'), RunState.RUNNING);
    await untilState('eve', await start('eve'), RunState.RUNNING);
    const signals = () => new Set(pool.requests(signal).map(({ name }) => name));
    const control = supervisor.as('olga', ControlService);
    const scope = { kind: { case: 'everything', value: {} } } as const;
    const order = { requestId: 'halt-1', scope, reason: 'Look first.' };
    const { halt } = await control.halt(order);
    await expect.poll(signals).toEqual(new Set(['halted']));
    await control.resume({ requestId: 'resume-1', haltId: halt?.haltId ?? '' });
    await expect.poll(signals).toEqual(new Set(['halted', 'resumed']));
  });

  it('can act only for their configured tenants, regardless of the tenants in their token (SYS-6)', async () => {
    const { fakes } = supervisor;
    await untilState('eve', await start('eve'), RunState.RUNNING);
    await untilState('anna', await start('anna'), RunState.RUNNING);
    const { manifest } = await readManifest(pool, ['rivals'], pool);
    expect(manifest?.name).toBe('worker');
    await readManifest(fakes, [], fakes);
    await readManifest(fakes, ['acme'], fakes);
    // Keys are fetched at most once per second, so the keys of a new signer may be unavailable until the next fetch.
    const unknown = { reason: expect.stringMatching(/^(TOKEN_INVALID|KEYS_UNAVAILABLE)$/) };
    const notServed = { reason: 'TENANT_NOT_SERVED' };
    // Workers outside the pool that present an agent token of the pool.
    await expect(readManifest(fakes, [], pool)).rejects.toMatchObject(notServed);
    await expect(readManifest(fakes, ['rivals'], pool)).rejects.toMatchObject(unknown);
    await expect(readManifest(fakes, ['acme'], pool)).rejects.toMatchObject(notServed);
    await expect(readManifest(fakes, ['acme', 'rivals'], pool)).rejects.toMatchObject(notServed);
    // Workers of the pool that present an agent token of another tenant.
    for (const tenants of [[], ['acme']]) {
      await expect(readManifest(pool, tenants, fakes)).rejects.toMatchObject(unknown);
    }
    await expect(readManifest(pool, ['rivals'], fakes)).rejects.toMatchObject(notServed);
  });
});
