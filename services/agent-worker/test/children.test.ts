import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { describe, expect, it, vi } from 'vitest';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeAnswer, FakeModel } from './fake-meter.ts';
import { approveAll, gatherTeam, LEAD, teamModel } from './team.ts';
import { World } from './world.ts';

/** A lead that delegates one task to one helper and reports the result. */
const ONE = { ...LEAD, subAgents: [{ name: 'helper' }] };

function leadOver(child: FakeAnswer | (() => Promise<FakeAnswer>)): FakeModel {
  return async (_, { messages }, agent) => {
    if (agent !== AGENT.instance) return typeof child === 'function' ? await child() : child;
    const last = messages.at(-1)?.parts[0]?.kind;
    if (last?.case === 'toolResult') return `Result: ${last.value.content}`;
    return { toolUses: [{ tool: 'handoff_helper', args: { task: 'Help.' } }] };
  };
}

/** A model that does not answer until the test calls `answer`. */
function heldModel() {
  const { promise: asked, resolve: reached } = Promise.withResolvers<void>();
  const { promise, resolve: answer } = Promise.withResolvers<FakeAnswer>();
  const model = () => {
    reached();
    return promise;
  };
  return { asked, answer, model };
}

async function startLead(model: FakeModel): Promise<World> {
  const world = await World.start({ model });
  await world.startWorker();
  world.supervisor.rule = approveAll;
  world.withChildren({ helper: { kind: AgentKind.REACT, tools: [] } });
  return world;
}

function answerOf(world: World): string | undefined {
  return world.supervisor.endings.get(RUN)?.answer;
}

describe('an orchestrator', () => {
  it('delegates concurrently, is suspended while its children run, and continues with their replies (AG-3, RT-1)', async () => {
    const world = await World.start({ model: teamModel });
    await world.startWorker();
    gatherTeam(world);
    await world.deliver({ manifest: LEAD });
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('Both reported: reader is done and counter is done.');
    expect(world.supervisor.ended.toSorted()).toEqual(['counter-1 replied', 'reader-1 replied']);
    expect(world.meter.paid.filter((line) => line.startsWith('op-'))).toHaveLength(2);
    expect(new Set(world.meter.paid).size).toBe(world.meter.paid.length);
  });

  it('offers its model each sub-agent as a tool with its description (AG-1, AG-3)', async () => {
    const world = await startLead(leadOver('Helped.'));
    const helper = { name: 'helper', description: 'Helps with dates.' };
    await world.deliver({ manifest: { ...LEAD, subAgents: [helper] } });
    await world.until('COMPLETED');
    expect(world.meter.requests[0]?.tools).toMatchObject([
      { name: 'handoff_helper', description: 'Helps with dates.' },
    ]);
  });

  it('reports a child’s failure to its model and continues (AG-3)', async () => {
    const world = await startLead(leadOver(''));
    await world.deliver({ manifest: ONE });
    await world.until('COMPLETED');
    expect(answerOf(world)).toContain('"error":"target_failed"');
    expect(answerOf(world)).toContain('llm_empty');
    expect(world.supervisor.ended).toEqual(['helper-1 target_failed']);
  });

  it('reports a child’s cancellation to its model (AG-3)', async () => {
    const { asked, answer, model } = heldModel();
    const world = await startLead(leadOver(model));
    await world.deliver({ manifest: ONE });
    await asked;
    await world.until('SUSPENDED');
    await world.supervisor.endAgent(RUN, 'helper-1');
    await world.until('COMPLETED');
    answer('too late');
    expect(answerOf(world)).toContain('"error":"target_cancelled"');
  });

  it('waits for a child up to the timeout, and then ends it (AG-3)', async () => {
    const { answer, model } = heldModel();
    const world = await startLead(leadOver(model));
    const subAgents = [{ name: 'helper', askTimeout: durationFromMs(30) }];
    await world.deliver({ manifest: { ...ONE, subAgents } });
    await world.until('COMPLETED');
    answer('too late');
    expect(answerOf(world)).toContain('"error":"timed_out"');
    expect(world.supervisor.ended).toEqual(['helper-1 timed_out']);
    expect((await world.describe(RUN, 'helper')).state).toBe(AgentState.CANCELLED);
  });

  it('reports to its model why the child received no slot (AG-3, SB-2)', async () => {
    const world = await startLead(leadOver('unused'));
    world.supervisor.slotRefusal = () => 'The run has 2 of 2 agents.';
    await world.deliver({ manifest: ONE });
    await world.until('COMPLETED');
    expect(answerOf(world)).toContain('The run has 2 of 2 agents.');
    expect(world.supervisor.ended).toEqual([]);
  });

  it('stops at the limit of refusals (AG-10)', async () => {
    const world = await World.start({
      model: () => ({ toolUses: [{ tool: 'issue_refund', args: { amount_usd: 9_000 } }] }),
    });
    await world.startWorker();
    world.supervisor.rule = (raw) => ({
      verdict: 'block',
      reason: 'not_yours',
      action: JSON.parse(raw) as never,
    });
    await world.deliver({ manifest: { ...LEAD, limits: { maxRefusals: 2 } } });
    const { stopReason } = await world.until('BLOCKED');
    expect(stopReason).toBe('supervisor_block:not_yours');
    expect(world.meter.paid).toHaveLength(3);
  });
});

describe('the timeout of a wait for a child', () => {
  it('is paused while the child is parked, and resumes with the remaining time (SB-4)', async () => {
    const world = await startLead(leadOver('back again'));
    world.slots.set(`${RUN}/helper-1`, 'PAUSED');
    const subAgents = [{ name: 'helper', askTimeout: durationFromMs(8_000) }];
    await world.deliver({ manifest: { ...ONE, subAgents } });
    await world.until('PARKED', RUN, 'helper');
    const worker = world.lastWorker;
    const timer = () => worker.store.db.selectFrom('timers').selectAll().executeTakeFirst();
    // The lead may begin to wait after its child is parked.
    await expect.poll(timer).toMatchObject({ due_at: null, waits_with: 'helper-1' });
    const left = (await timer())?.remaining_ms ?? 0n;
    expect(left).toBeGreaterThan(0n);
    expect(left).toBeLessThanOrEqual(8_000n);
    world.slots.set(`${RUN}/helper-1`, 'ACTIVE');
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('Result: back again');
    expect(await timer()).toBeUndefined();
  });
});

describe('a user proxy', () => {
  it('is suspended until the human answers, even across a restart, and replies to its parent (AG-4, RT-2)', async () => {
    const world = await World.start({ model: leadOver('unused'), inFile: true });
    const worker = await world.startWorker();
    world.supervisor.rule = approveAll;
    world.withChildren({ helper: { kind: AgentKind.USER_PROXY, tools: [] } });
    await world.deliver({ manifest: ONE });
    const { waitingFor } = await world.until('WAITING_FOR_INPUT', RUN, 'helper');
    expect(waitingFor).toEqual([expect.stringMatching(/^human_reply:ask_/)]);
    await vi.waitFor(() =>
      expect(world.events.map((event) => event.waitingFor)).toContain(waitingFor[0]),
    );
    await worker.stop();
    await world.startWorker();
    const name = waitingFor[0] ?? '';
    const signal = { tenant: TENANT, runId: RUN, agentInstance: 'helper-1', name };
    await world.worker.signal({ ...signal, requestId: 's-1', payloadJson: '{"text":"Blue."}' });
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('Result: Blue.');
  });
});
