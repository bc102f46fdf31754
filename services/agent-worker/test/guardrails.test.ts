import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentKind, RefusalHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { defineAgent } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { createCustomAgent } from '../src/agents/custom/custom-agent.ts';
import { AGENT, type ManifestFields, RUN } from './delivery.ts';
import type { FakeAnswer } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const { REACT, ORCHESTRATOR, JSON_ACTION, CUSTOM, INFORMATION, PERSONAL_FEED } = AgentKind;

async function start(answers: readonly FakeAnswer[], manifest: Partial<ManifestFields>) {
  const left = [...answers];
  const world = await World.start({ model: () => left.shift() ?? 'No more answers.' });
  world.supervisor.rule = approveAll;
  const asking = defineAgent({
    name: AGENT.name,
    run: (agent, { goal }) => agent.prompt({ text: goal }),
  });
  await world.startWorker({}, { agents: { custom: createCustomAgent.bind(undefined, asking) } });
  await world.deliver({ manifest });
  return world;
}

function trips(world: World): string[] {
  return world.events.flatMap(({ type, dimension }) =>
    type === HookEventType.GUARDRAIL_TRIP ? [dimension] : [],
  );
}

describe.each([
  ['react', { kind: REACT }],
  ['orchestrator', { kind: ORCHESTRATOR }],
  ['custom', { kind: CUSTOM }],
  ['information', { kind: INFORMATION, outputTopic: 'weather', optionsJson: '{"max_items":1}' }],
] as const)('guardrails of a %s agent', (_, manifest) => {
  it('continue a truncated answer, report a nearly exhausted budget and publish GUARDRAIL_TRIP (AG-6, EM-5)', async () => {
    const answers = [
      { text: 'First half, ', isCut: true },
      { text: 'second half.', nearBudget: true },
    ];
    const world = await start(answers, { ...manifest });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toContain('First half, second half.');
    await expect.poll(() => trips(world)).toEqual(['max_tokens', 'near_budget']);
  });
});

describe('guardrails of a json-action agent', () => {
  const read = JSON.stringify({ kind: 'tool', name: 'get_refund_context', args: { user_id: 42 } });

  it('request a truncated action again, report a nearly exhausted budget and publish GUARDRAIL_TRIP (AG-6, EM-5)', async () => {
    const answers = [
      { text: '{"kind":"fin', isCut: true },
      { text: '{"kind":"final","answer":"Done."}', nearBudget: true },
    ];
    const world = await start(answers, { kind: JSON_ACTION });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('Done.');
    await expect.poll(() => trips(world)).toEqual(['max_tokens', 'near_budget']);
  });

  it('stop the agent before the fourth identical action and publish GUARDRAIL_TRIP (AG-6)', async () => {
    const onRefusal = RefusalHandling.TELL_MODEL;
    const answers = Array.from({ length: 8 }, () => read);
    const world = await start(answers, { kind: JSON_ACTION, onRefusal });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('stuck');
    expect(world.gateway.executed).toHaveLength(3);
    await expect.poll(() => trips(world)).toEqual(['stuck']);
  });
});

describe('guardrails of a personal feed', () => {
  it('continue a truncated answer and publish GUARDRAIL_TRIP (AG-6)', async () => {
    const answers = ['It rains.', { text: 'First half, ', isCut: true }, 'second half.'];
    const manifest = {
      kind: PERSONAL_FEED,
      followTopics: ['weather'],
      optionsJson: '{"max_items":1}',
    };
    const world = await start(answers, manifest);
    await world.until('SUSPENDED');
    const other = { name: 'source', instance: 'source-1' };
    const source = { name: 'source', kind: INFORMATION, outputTopic: 'weather' };
    const items = { optionsJson: '{"max_items":1}' };
    await world.deliver({ runId: 'run-2', agent: other, manifest: { ...source, ...items } });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('First half, second half.');
    await expect.poll(() => trips(world)).toEqual(['max_tokens']);
  });
});

describe('guardrails of a react agent', () => {
  it('stop the agent when it repeats the same tool call and publish GUARDRAIL_TRIP (AG-6)', async () => {
    const again = { toolUses: [{ tool: 'get_refund_context', args: { user_id: 42 } }] };
    const world = await start([again, again, again, again], { kind: REACT });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('stuck');
    expect(world.gateway.executed).toHaveLength(3);
    await expect.poll(() => trips(world)).toEqual(['stuck']);
  });
});
