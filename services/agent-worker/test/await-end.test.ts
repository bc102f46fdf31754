import { fromBinary } from '@bufbuild/protobuf';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { ScriptedModel } from './scripted-model.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

/** Waits for the end of the root agent, as the supervisor does when it ends the run. */
function awaitEnd(world: World, runId = RUN) {
  return world.worker.cancel({
    requestId: 'await-end',
    tenant: TENANT,
    runId,
    agentInstance: AGENT.instance,
    stopReason: 'success',
    awaitEnd: true,
  });
}

describe('Cancel that awaits the end of an agent', () => {
  it('returns the last events of the agent once its history is stored, and records no cancellation (AG-7, AG-8, HK-1)', async () => {
    const world = await World.start({ model: () => 'Done.' });
    let awaited: ReturnType<typeof awaitEnd> | undefined;
    world.supervisor.rule = (raw) => {
      // The supervisor may call Cancel before the worker has received the decision.
      awaited = awaitEnd(world);
      return approveAll(raw);
    };
    await world.startWorker();
    await world.deliver({ manifest: { kind: AgentKind.REACT, tools: [] } });
    await vi.waitFor(() => expect(awaited).toBeDefined());
    const response = await awaited;
    const types = response?.events.map(({ event }) => fromBinary(HookEventSchema, event).type);
    expect(response).toMatchObject({ hasEnded: true, ended: 0 });
    expect(types).toEqual([HookEventType.STEP_END]);
    const { db } = world.lastWorker.store;
    const turns = await db.selectFrom('history').select('run_id').execute();
    expect(turns.map(({ run_id }) => run_id)).toContain(RUN);
    expect(await db.selectFrom('cancels').selectAll().execute()).toEqual([]);
    expect((await world.describe()).state).toBe(AgentState.COMPLETED);
  });

  it('returns at once that a suspended or unknown agent has not ended, and does not change it (AG-7)', async () => {
    const scripts = await ScriptedModel.start();
    onTestFinished(() => scripts[Symbol.asyncDispose]());
    const world = await World.start({ model: scripts.model('escalate-1200') });
    await world.startWorker();
    await world.deliver();
    await world.until('SUSPENDED');
    expect(await awaitEnd(world)).toMatchObject({ hasEnded: false, events: [] });
    expect(await awaitEnd(world, 'run-2')).toMatchObject({ hasEnded: false });
    expect((await world.describe()).state).toBe(AgentState.SUSPENDED);
  });
});
