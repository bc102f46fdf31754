import { AgentKind, PreemptionHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it } from 'vitest';
import { AGENT, type ManifestFields, RUN } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { WorkerProcess } from './worker-process.ts';
import { World } from './world.ts';

const HELPER = `${RUN}/helper-1`;
const LEAD: Partial<ManifestFields> = {
  kind: AgentKind.ORCHESTRATOR,
  tools: [],
  subAgents: [{ name: 'helper' }],
};
const PARTIAL: Partial<ManifestFields> = {
  kind: AgentKind.REACT,
  tools: ['get_refund_context'],
  onPreempt: PreemptionHandling.PARTIAL,
};

/** The lead delegates to the helper, which looks up a customer twice and then answers. */
const model: FakeModel = (_, { messages }, agent) => {
  const turn = messages.filter(({ role }) => role === 3).length;
  if (agent !== AGENT.instance) {
    const lookUp = { tool: 'get_refund_context', args: { user_id: 42 + turn } };
    return turn < 2 ? { toolUses: [lookUp] } : 'Anna was charged.';
  }
  const last = messages.at(-1)?.parts[0]?.kind;
  if (last?.case === 'toolResult') return `Result: ${last.value.content}`;
  return { toolUses: [{ tool: 'handoff_helper', args: { task: 'Help.' } }] };
};

async function startTeam(helper = PARTIAL, inFile = false): Promise<World> {
  const world = await World.start({ model, inFile });
  await world.startWorker();
  world.supervisor.rule = approveAll;
  world.withChildren({ helper });
  return world;
}

/** Takes the helper's slot while its second model call is in flight, and then lets the call end. */
async function preempt(world: World, state: 'PAUSED' | 'WAITING' = 'PAUSED'): Promise<void> {
  const { reached, release } = world.faults.holdAt('before generate helper-1 op-3');
  await world.deliver({ manifest: LEAD });
  await reached;
  const before = world.slots.renewals.length;
  world.slots.set(HELPER, state, { hint: true });
  // Renewals are serialized: the worker processed the result of the first renewal before it sent the second.
  const after = () => world.slots.renewals.slice(before).filter((line) => line.includes(HELPER));
  await expect.poll(() => after().length).toBeGreaterThan(1);
  release();
}

function answerOf(world: World): string {
  return world.supervisor.endings.get(RUN)?.answer ?? '';
}

/** Resolves when the helper has ended with its partial answer, and the lead with its reply. */
async function expectOnePartialReply(world: World): Promise<void> {
  await world.until('PAUSED', RUN, 'helper');
  await world.until('COMPLETED');
  expect(answerOf(world)).toMatch(/^Result: \(partial\) get_refund_context: /);
  const decided = world.supervisor.decided.filter((line) => line.includes('partial'));
  expect(decided).toEqual(['helper-1 partial approve final']);
  expect(world.supervisor.reports).toEqual([]);
}

describe('an agent that ends with a partial result when it is preempted', () => {
  it('proposes its partial answer without a slot grant, and its parent receives the answer marked as partial (SB-4, AG-3)', async () => {
    const world = await startTeam();
    await preempt(world);
    await world.until('PAUSED', RUN, 'helper');
    await world.until('COMPLETED');
    expect((await world.describe(RUN, 'helper')).stopReason).toBe('paused');
    expect(answerOf(world)).toMatch(/^Result: \(partial\) get_refund_context: \{.*Anna/);
    const finals = world.supervisor.requests.filter(({ partial }) => partial);
    expect(finals[0]?.composed).toBe(true);
    // A repeated proposal has the call_id of the first one.
    expect(world.supervisor.decided).toContain('helper-1 partial approve final');
    expect(new Set(finals.map(({ callId }) => callId)).size).toBe(1);
    // The second tool call of the helper was neither reviewed nor executed.
    expect(world.gateway.executed).toHaveLength(1);
    expect(world.supervisor.ended).toEqual(['helper-1 replied']);
  });

  it('is parked while it has no partial answer, and completes when it has a slot again (SB-4)', async () => {
    const world = await startTeam();
    world.slots.set(HELPER, 'PAUSED');
    await world.deliver({ manifest: LEAD });
    await world.until('PARKED', RUN, 'helper');
    world.slots.set(HELPER, 'ACTIVE');
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('Result: Anna was charged.');
    expect(world.supervisor.requests.some(({ partial }) => partial)).toBe(false);
  });

  it('is parked when the review rejects its partial result, and completes later (SB-4, SV-1)', async () => {
    const world = await startTeam();
    world.supervisor.rule = (raw) => ({
      ...approveAll(raw),
      ...(raw.includes('get_refund_context:') && { verdict: 'block', reason: 'not_yet' }),
    });
    await preempt(world);
    await world.until('PARKED', RUN, 'helper');
    expect(world.supervisor.decided).toContain('helper-1 partial block final');
    world.slots.set(HELPER, 'ACTIVE');
    await world.until('COMPLETED');
    expect(answerOf(world)).toBe('Result: Anna was charged.');
    expect(world.gateway.executed).toHaveLength(2);
  });

  it('is parked when its slot lease expired without a preemption (SB-4, SB-8)', async () => {
    const world = await startTeam();
    await preempt(world, 'WAITING');
    await world.until('PARKED', RUN, 'helper');
    expect(world.supervisor.requests.some(({ partial }) => partial)).toBe(false);
  });

  it('replies once when its worker stops before it receives the decision (SB-4, RT-1)', async () => {
    const world = await startTeam(PARTIAL, true);
    const stopped = world.lastWorker;
    const answered = world.faults.silenceAt('after review helper-1 partial');
    await preempt(world);
    await answered;
    await stopped.stop();
    world.slots.set(HELPER, 'RELEASED');
    await world.startWorker();
    await expectOnePartialReply(world);
  });

  it('replies once when its worker crashes before it receives the decision (SB-4, RT-1)', async () => {
    const world = await World.start({ model, inFile: true });
    world.supervisor.rule = approveAll;
    world.withChildren({ helper: PARTIAL });
    const crashed = await WorkerProcess.start(world);
    world.callWorkerAt(crashed.address);
    const answered = world.faults.silenceAt('after review helper-1 partial');
    await preempt(world);
    await answered;
    await crashed.kill();
    // The slot is still paused, so the agent is preempted again and must repeat its proposal.
    await world.startWorker();
    await expectOnePartialReply(world);
  });

  it('is parked by default (SB-4)', async () => {
    const { onPreempt: _, ...parks } = PARTIAL;
    const world = await startTeam(parks);
    await preempt(world);
    await world.until('PARKED', RUN, 'helper');
    expect(world.supervisor.requests.some(({ partial }) => partial)).toBe(false);
  });
});
