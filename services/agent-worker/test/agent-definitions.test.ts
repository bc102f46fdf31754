import type { AgentDefinition } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { createCustomAgent } from '../src/agents/custom/custom-agent.ts';
import type { AgentFactory } from '../src/runtime/agent.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { approveAll } from './team.ts';
import { CUSTOM, signal, startWith } from './test-agent.ts';
import { World } from './world.ts';

describe('a TypeScript agent', () => {
  const definition: AgentDefinition = {
    name: 'adder',
    async run(agent, { goal }) {
      const seen = await agent.step(1, () => agent.tool('get_refund_context', { user_id: 42 }));
      const refused = await agent.tool('issue_refund', { amount_usd: 5 });
      const { text } = await agent.sleepUntilSignal('more');
      return [goal, seen.ok, refused.ok ? 'paid' : refused.error, String(text)].join(' ');
    },
  };

  it('runs steps, tools and signal waits, and its return value is reviewed (AG-1, AG-10, SV-1)', async () => {
    const world = await World.start();
    const custom: AgentFactory = (manifest, instance) =>
      createCustomAgent(definition, manifest, instance);
    await world.startWorker({}, { agents: { custom } });
    world.supervisor.rule = (raw) =>
      raw.includes('issue_refund')
        ? { verdict: 'block', reason: 'not_yours', action: JSON.parse(raw) }
        : approveAll(raw);
    await world.deliver({ manifest: CUSTOM, goal: 'Look:' });
    await world.until('SUSPENDED');
    const { instance: agentInstance } = AGENT;
    const more = { requestId: 's', tenant: TENANT, runId: RUN, agentInstance, name: 'more' };
    await world.worker.signal({ ...more, payloadJson: '{"text":"thanks"}' });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe(
      'Look: true supervisor_block:not_yours thanks',
    );
    expect(world.gateway.executed).toEqual(['op-0 get_refund_context']);
  });
});

describe('a definition', () => {
  it('is fixed for a started run; changes affect new runs only (RT-1)', async () => {
    const world = await startWith(async (ctx) => {
      await ctx.sleepUntilSignal('go');
      await ctx.reply(JSON.stringify(ctx.manifest.options));
    });
    await world.deliver({ manifest: { ...CUSTOM, optionsJson: '{"version":1}' } });
    await world.until('SUSPENDED');
    await world.deliver({ runId: 'run-2', manifest: { ...CUSTOM, optionsJson: '{"version":2}' } });
    for (const runId of [RUN, 'run-2']) {
      await world.until('SUSPENDED', runId);
      await signal(world, 'go', { name: 'go', runId });
      await world.until('COMPLETED', runId);
    }
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('{"version":1}');
    expect(world.supervisor.endings.get('run-2')?.answer).toBe('{"version":2}');
  });
});
