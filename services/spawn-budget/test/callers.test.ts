import { RenewIntent } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { startKeyPeer } from '@writ/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stateOf, TestRun } from './test-run.ts';
import { World } from './world.ts';

describe('a caller of spawn-budget', () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(() => world.stop());

  it('may only renew and watch if it is a worker (SYS-6)', async () => {
    const run = new TestRun(world);
    await run.open();
    const ids = { ...run.id, requestId: 'mine' };
    const agent = { name: 'child', instance: 'a' };
    const denied = { kind: 'permission_denied', reason: 'CALLER_NOT_ALLOWED' };
    const acquire = { ...ids, agent, parent: run.root, depth: 1 };
    const one = { ...ids, agentInstance: 'root' };
    const calls = [
      world.worker.openPool({ ...ids, root: agent, budget: {} }),
      world.worker.acquire(acquire),
      world.worker.release(one),
      world.worker.reprioritize({ ...one, priority: 5 }),
      world.worker.getPool(run.id),
      world.worker.closePool(ids),
    ];
    // Awaited together, because a rejection that is awaited later counts as unhandled.
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(denied)));
    expect(await run.renew('root')).toBe('ACTIVE');
  });

  it('is denied every call if it is another service (SYS-6)', async () => {
    const meter = world.clientOf(world.peer('execution-meter'));
    await expect(meter.getPool({ tenant: 'acme', runId: 'run-1' })).rejects.toMatchObject({
      reason: 'CALLER_NOT_ALLOWED',
    });
  });

  it('is rejected if its key is not trusted (SYS-4)', async () => {
    const untrusted = await startKeyPeer('supervisor', { clock: world.clock });
    const client = world.clientOf(untrusted);
    // Keys are fetched at most once a second, and the keys of the supervisor were fetched less than a second ago.
    world.advance(2_000);
    await expect(client.getPool({ tenant: 'acme', runId: 'run-1' })).rejects.toMatchObject({
      kind: 'unauthenticated',
      reason: 'TOKEN_INVALID',
    });
    await untrusted.close();
  });

  it('can renew and watch only agents of the tenants that it serves (SYS-6)', async () => {
    const ours = new TestRun(world, 'acme');
    const theirs = new TestRun(world, 'globex');
    await ours.open();
    await theirs.open();
    const worker = world.clientOf(world.peer('agent-worker'), { tenants: ['acme'] });
    const { agents } = await worker.renew({
      agents: [await theirs.renewal('root'), await ours.renewal('root')],
    });
    expect(agents.map(({ slot, refusal }) => refusal || stateOf(slot))).toEqual([
      'TENANT_NOT_SERVED',
      'ACTIVE',
    ]);
    await expect(async () => {
      for await (const _ of worker.watchPauses({ tenants: ['acme', 'globex'] })) break;
    }).rejects.toMatchObject({ reason: 'TENANT_NOT_SERVED' });
  });

  it('cannot read the run of another tenant that has the same id (SYS-6)', async () => {
    const ours = new TestRun(world, 'acme');
    await ours.open({ maxAgents: 7 });
    await expect(
      world.supervisor.getPool({ tenant: 'globex', runId: ours.runId }),
    ).rejects.toMatchObject({ kind: 'not_found', reason: 'POOL_NOT_FOUND' });
  });

  it('cannot renew with a token that is expired, self-issued or for another service (SUP-9)', async () => {
    const run = new TestRun(world);
    await run.open();
    const agent = { ...run.id, agent: run.root };
    const supervisor = world.peer('supervisor');
    const { executionMeterToken } = await supervisor.agentCredentials(agent);
    const { spawnBudgetToken: expired } = await supervisor.agentCredentials(agent, -60_000);
    const { spawnBudgetToken: selfMade } = await world.peer('agent-worker').agentCredentials(agent);
    const { agents } = await world.worker.renew({
      agents: [executionMeterToken, expired, selfMade].map((agentToken) => ({
        agentToken,
        epoch: 1n,
        intent: RenewIntent.RUN,
      })),
    });
    expect(agents.map(({ refusal }) => refusal)).toEqual([
      'TOKEN_INVALID',
      'TOKEN_EXPIRED',
      'TOKEN_INVALID',
    ]);
  });

  it('can renew other agents while the key of one token cannot be fetched (SB-8, SYS-4)', async () => {
    const other = await World.start();
    onTestFinished(() => other.stop());
    const run = new TestRun(other);
    await run.open();
    const known = await run.renewal('root');
    expect(stateOf((await other.worker.renew({ agents: [known] })).agents[0]?.slot)).toBe('ACTIVE');
    // Keys are fetched at most once a second, so the new key of the supervisor is not fetched yet.
    await other.peer('supervisor').signer.rotate();
    const fresh = await run.renewal('root');
    const { agents } = await other.worker.renew({ agents: [fresh, known] });
    expect(agents.map(({ slot, refusal }) => refusal || stateOf(slot))).toEqual([
      'KEYS_UNAVAILABLE',
      'ACTIVE',
    ]);
    await expect(other.worker.renew({ agents: [fresh, fresh] })).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'KEYS_UNAVAILABLE',
    });
  });

  it('receives the name of a missing or malformed field (SYS-3)', async () => {
    const run = new TestRun(world);
    await expect(
      world.supervisor.acquire({ ...run.id, requestId: 'r', depth: 1 }),
    ).rejects.toMatchObject({ kind: 'invalid_argument' });
    await expect(run.open({ maxAgents: 0 })).rejects.toThrow(/max_agents/);
    await expect(run.acquire('a')).rejects.toMatchObject({ reason: 'POOL_NOT_FOUND' });
    expect(await run.release('a')).toMatchObject({ released: false });
  });
});
