import { timestampMs } from '@bufbuild/protobuf/wkt';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  RenewIntent,
  type RenewResponse,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { createVerifier, internalGate, trustSigners } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FakeSlots } from '../../services/agent-worker/test/fake-slots.ts';
import { FaultSwitches } from '../../services/agent-worker/test/fault-switches.ts';
import { TestRun } from '../../services/spawn-budget/test/test-run.ts';
import { World } from '../../services/spawn-budget/test/world.ts';

interface Slots {
  renew(intent: RenewIntent, epoch: bigint): Promise<RenewResponse['agents'][number] | undefined>;
  readonly runId: string;
}

async function fakeSlots(): Promise<Slots> {
  const fake = new FakeSlots(new FaultSwitches());
  const supervisor = await startKeyPeer('supervisor');
  const worker = await startKeyPeer('agent-worker');
  const trust = trustSigners(supervisor.signer, worker.signer);
  const verifier = createVerifier({ trust, clock: systemClock });
  const gate = internalGate({ service: 'spawn-budget', verifier, enforceSlotGrants: true });
  const peer = await startKeyPeer('spawn-budget', { routes: fake.routes(), gate });
  fake.equip(peer.signer, verifier);
  onTestFinished(async () => {
    for (const each of [supervisor, worker, peer]) await each.close();
  });
  const to = { audience: 'spawn-budget', address: peer.address } as const;
  const client = worker.client(SpawnBudgetService, to);
  const agent = { name: 'lead', instance: 'root' };
  const { spawnBudgetToken } = await supervisor.agentCredentials({
    tenant: 'acme',
    runId: 'run-1',
    agent,
  });
  return {
    runId: 'run-1',
    renew: async (intent, epoch) => {
      const entry = { agentToken: spawnBudgetToken, intent, epoch };
      return (await client.renew({ agents: [entry] })).agents[0];
    },
  };
}

async function realSlots(): Promise<Slots> {
  const world = await World.start();
  onTestFinished(() => world.stop());
  const run = new TestRun(world);
  await run.open();
  return {
    runId: run.runId,
    renew: async (intent, epoch) => {
      const entry = await run.renewal('root', intent, epoch);
      return (await world.worker.renew({ agents: [entry] })).agents[0];
    },
  };
}

describe.each([
  ['spawn-budget', realSlots],
  ["the worker's fake of spawn-budget", fakeSlots],
])('Renew of %s', (_, start) => {
  it('returns a grant and its expiry for a running agent (SB-4)', async () => {
    const { renew, runId } = await start();
    const renewed = await renew(RenewIntent.RUN, 1n);
    expect(renewed).toMatchObject({ runId, refusal: '', slot: { state: SlotState.ACTIVE } });
    expect(renewed?.slot?.grant).not.toBe('');
    const { grantExpireTime } = renewed?.slot ?? {};
    expect(grantExpireTime && timestampMs(grantExpireTime)).toBeGreaterThan(0);
  });

  it('returns no grant for an agent that suspends (SB-8)', async () => {
    const { renew, runId } = await start();
    await renew(RenewIntent.RUN, 1n);
    const renewed = await renew(RenewIntent.SUSPEND, 1n);
    expect(renewed).toMatchObject({
      runId,
      refusal: '',
      slot: { state: SlotState.SUSPENDED, grant: '' },
    });
  });

  it('refuses an epoch below the highest one (RT-2)', async () => {
    const { renew } = await start();
    await renew(RenewIntent.RUN, 2n);
    const renewed = await renew(RenewIntent.RUN, 1n);
    expect(renewed).toMatchObject({ refusal: 'STALE_EPOCH' });
    expect(renewed?.slot).toBeUndefined();
  });
});
