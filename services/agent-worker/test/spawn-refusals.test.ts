import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { PreconditionError } from '@writ/kernel';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AgentFactory } from '../src/runtime/agent.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll, LEAD } from './team.ts';
import { World } from './world.ts';

const ONE = { ...LEAD, subAgents: [{ name: 'helper' }] };
const SPAWN = 'spawn op-3-0-0';

const model: FakeModel = (_, { messages }, agent) => {
  if (agent !== AGENT.instance) return 'Helped.';
  const last = messages.at(-1)?.parts[0]?.kind;
  if (last?.case === 'toolResult') return `Result: ${last.value.content}`;
  return { toolUses: [{ tool: 'handoff_helper', args: { task: 'Help.' } }] };
};

/** Calls a tool, delegates, and answers after a replay. */
const custom: AgentFactory = (_, id) => ({
  id,
  kind: 'custom',
  async run(ctx) {
    await ctx.tool('get_refund_context', '{"user_id":42}');
    await ctx.spawn('helper', 'Help.');
    await ctx.sleepUntilSignal('go');
    await ctx.reply('Done.');
  },
});

describe('a delegation', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.start({ model });
    world.supervisor.rule = approveAll;
    world.withChildren({ helper: { kind: AgentKind.REACT, tools: [] } });
    await world.startWorker({}, { agents: { custom } });
  });

  it('returns an error result when its child cannot be created (AG-3)', async () => {
    world.faults.failAt(
      `before ${SPAWN}`,
      new PreconditionError('SPAWN_FAILED', 'No tab was created.'),
    );
    await world.deliver({ manifest: ONE });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toContain('No tab was created.');
    expect(world.supervisor.ended).toEqual([]);
  });

  it('keeps the results of earlier calls for the next review when its child cannot be created, even after a replay (SV-7, RT-1)', async () => {
    const failed = new PreconditionError('SPAWN_FAILED', 'No tab was created.');
    world.faults.failAt('before spawn op-1', failed);
    await world.deliver({ manifest: { kind: AgentKind.CUSTOM } });
    await world.until('SUSPENDED');
    const agentInstance = AGENT.instance;
    const signal = { requestId: 'go', tenant: TENANT, runId: RUN, agentInstance, name: 'go' };
    await world.worker.signal(signal);
    await world.until('COMPLETED');
    expect(world.supervisor.observations).toEqual(['op-0']);
    expect(world.supervisor.receipts).toHaveLength(1);
  });

  it('parks an agent that was paused, and is executed once when the agent has a slot again (SB-4, AG-3)', async () => {
    const { reached, release } = world.faults.holdAt(`before ${SPAWN}`);
    await world.deliver({ manifest: ONE });
    await reached;
    world.faults.failAt(`after ${SPAWN}`, new PreconditionError('AGENT_PAUSED', 'Paused.'));
    world.slots.set(RUN, 'PAUSED');
    release();
    await world.until('PARKED');
    world.slots.set(RUN, 'ACTIVE');
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toContain('Helped.');
    expect(world.supervisor.ended).toEqual(['helper-1 replied']);
  });
});
