import type { AgentCredentials } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { RpcClient } from '@writ/rpc';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  AGENT,
  deliveryRequest,
  type ManifestFields,
  RUN,
  TENANT,
} from '../../services/agent-worker/test/delivery.ts';
import { approveAll } from '../../services/agent-worker/test/team.ts';
import { World } from '../../services/agent-worker/test/world.ts';
import { FakePeers } from '../../services/supervisor/test/fake-peers.ts';

/** A worker as the supervisor sees it. */
interface Worker {
  readonly client: RpcClient<typeof AgentWorkerService>;
  /** Differences from the manifest of a refund desk. */
  readonly manifest: Partial<ManifestFields>;
  credentials(): Promise<AgentCredentials>;
  /** Resolves when the delivered agent has ended without a cancel request. */
  untilEnded(): Promise<unknown>;
}

const RUN_KEY = { tenant: TENANT, runId: RUN };
const AGENT_KEY = { ...RUN_KEY, agentInstance: AGENT.instance };
const CANCEL = {
  ...RUN_KEY,
  requestId: 'cancel-1',
  stopReason: 'cancelled',
  retention: HistoryRetention.PERMANENT,
};

/** An action that a person must approve. */
const ESCALATED =
  '{"kind":"tool","name":"issue_refund","args":{"user_id":42,"amount_usd":1200,"reason":"x"}}';

/** @param ends whether the agent ends without a cancel request; otherwise it waits for an approval */
async function realWorker(ends: boolean): Promise<Worker> {
  const world = await World.start({ model: () => (ends ? 'Done.' : ESCALATED) });
  if (ends) world.supervisor.rule = approveAll;
  await world.startWorker();
  return {
    client: world.worker,
    manifest: ends ? { kind: AgentKind.REACT, tools: [] } : {},
    credentials: () => world.credentials(RUN),
    untilEnded: () => world.until('COMPLETED'),
  };
}

async function fakeWorker(): Promise<Worker> {
  const fakes = await FakePeers.start();
  const supervisor = await startKeyPeer('supervisor');
  onTestFinished(async () => {
    await supervisor.close();
    await fakes.close();
  });
  const to = { audience: 'agent-worker', address: fakes.addressOf('agent-worker') } as const;
  return {
    client: supervisor.client(AgentWorkerService, to),
    manifest: {},
    credentials: () => supervisor.agentCredentials({ ...RUN_KEY, agent: AGENT }),
    // The fake reports a delivered agent as ended for any cancel request with awaitEnd.
    untilEnded: async () => undefined,
  };
}

/** Delivers the agent; returns whether it was accepted. */
async function deliver({ client, manifest, credentials }: Worker): Promise<boolean> {
  const request = { ...deliveryRequest({ manifest }), credentials: await credentials() };
  return (await client.deliver(request)).accepted;
}

/** Signals the agent; returns whether the signal was accepted. */
async function signal({ client }: Worker, requestId: string): Promise<boolean> {
  const request = { ...AGENT_KEY, requestId, name: 'new_source_item', payloadJson: '{"page":7}' };
  return (await client.signal(request)).accepted;
}

describe.each([
  ['agent-worker', realWorker],
  ["the supervisor's fake of agent-worker", fakeWorker],
])('an agent of %s', (_, start) => {
  it('is accepted once (RT-3)', async () => {
    const worker = await start(false);
    expect(await deliver(worker)).toBe(true);
    expect(await deliver(worker)).toBe(false);
  });

  it('is rejected after its run was cancelled (SUP-8, RT-4)', async () => {
    const worker = await start(false);
    expect(await worker.client.cancel(CANCEL)).toMatchObject({ ended: 0, events: [] });
    await expect(deliver(worker)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'cancelled' },
    });
  });

  it('gets a signal once, and none after its end (RT-3)', async () => {
    const worker = await start(false);
    await deliver(worker);
    expect(await signal(worker, 'signal-1')).toBe(true);
    expect(await signal(worker, 'signal-1')).toBe(false);
    expect(await signal(worker, 'signal-2')).toBe(true);
    await worker.client.cancel(CANCEL);
    expect(await signal(worker, 'signal-3')).toBe(false);
  });

  it('gets no signal before it is delivered (RT-3)', async () => {
    const worker = await start(false);
    await expect(signal(worker, 'signal-1')).rejects.toMatchObject({
      kind: 'not_found',
      reason: 'AGENT_NOT_FOUND',
    });
  });

  it('is ended once, with its run or individually, and a repeat gets the same response (SUP-8)', async () => {
    for (const agentInstance of ['', AGENT.instance]) {
      const worker = await start(false);
      await deliver(worker);
      const cancel = { ...CANCEL, agentInstance };
      expect(await worker.client.cancel(cancel)).toMatchObject({ ended: 1 });
      expect(await worker.client.cancel(cancel)).toMatchObject({ ended: 1 });
      const another = { ...cancel, requestId: 'cancel-2' };
      expect(await worker.client.cancel(another)).toMatchObject({ ended: 0 });
    }
  });

  it('that has ended on its own is reported as ended, and is not ended again (AG-7, SUP-8)', async () => {
    const worker = await start(true);
    await deliver(worker);
    await worker.untilEnded();
    const awaited = { ...AGENT_KEY, requestId: 'await-end', stopReason: 'success', awaitEnd: true };
    for (let time = 0; time < 2; time += 1) {
      expect(await worker.client.cancel(awaited)).toMatchObject({ hasEnded: true, ended: 0 });
    }
    expect(await worker.client.cancel(CANCEL)).toMatchObject({ ended: 0 });
  });

  it('that was not delivered is not reported as ended (AG-7)', async () => {
    const worker = await start(false);
    const awaited = { ...AGENT_KEY, requestId: 'await-end', stopReason: 'success', awaitEnd: true };
    expect(await worker.client.cancel(awaited)).toMatchObject({ hasEnded: false, events: [] });
  });
});
