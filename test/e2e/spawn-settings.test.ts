import type { RunResult } from '@writ/contracts/writ/run/v1/run_pb';
import { type AgentInCode, createAgent } from '@writ/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedPlatform, startScriptedPlatform } from './scripted/scripted-platform.ts';

/** Waits for its model until its parent ends; unlike a suspended agent, it can be preempted. */
const slow = createAgent({
  name: 'slow',
  kind: 'react',
  instructions: 'You are slow.',
  model: { model: 'research' },
  priority: 'low',
});
const urgent = createAgent({
  name: 'urgent',
  kind: 'custom',
  priority: 'high',
  run: async () => 'Urgent work is done.',
});
const person = createAgent({ name: 'person', kind: 'user-proxy' });
/** Delegates to itself, and answers with the outcome. */
const nested = (name: string, settings: Partial<AgentInCode>) =>
  createAgent({
    name,
    kind: 'custom',
    sub_agents: [{ name }],
    ...settings,
    async run(operations, { goal }) {
      const child = await operations.handOff(name, `${goal} down`);
      return child.ok ? child.text : `${goal}: ${child.error}: ${child.message}`;
    },
  });

/** Fills the pool of two slots with an active agent, and then delegates to `urgent`. */
const busy = (name: string, settings: Partial<AgentInCode>, priority?: 'LOW') =>
  createAgent({
    name,
    kind: 'custom',
    sub_agents: [{ name: 'slow' }, { name: 'urgent' }],
    ...settings,
    spawn: { max_agents: 2, ...settings.spawn },
    async run(operations, { goal }) {
      await operations.spawn('slow', goal);
      const spawned = await operations.spawn('urgent', goal, priority && { priority });
      if (!spawned.ok) return `${spawned.error}: ${spawned.message}`;
      const answer = await operations.ask(spawned.child);
      return answer.ok ? answer.text : answer.error;
    },
  });

const impatient = createAgent({
  name: 'impatient',
  kind: 'custom',
  sub_agents: [{ name: 'person', ask_timeout: '50ms' }],
  async run(operations, { goal }) {
    const answer = await operations.handOff('person', goal);
    return answer.ok ? answer.text : `${answer.error}: ${answer.message}`;
  },
});

const speaker = createAgent({
  name: 'speaker',
  kind: 'custom',
  model: { model: 'research', also_allowed: ['sim-tidal-mills'] },
  tools: ['search_library', 'publish_brief'],
  async run(operations) {
    const call = { turns: [{ role: 'user', text: 'Say it.' }], model: 'research' } as const;
    const names = (await operations.tools()).map(({ name }) => name).toSorted();
    const reply = await operations.llm(call);
    return `${names.join()} ${reply.ok ? reply.text : reply.error}`;
  },
});
/** Delegates to `speaker` with each restriction, and answers with one outcome per line. */
const restrictive = createAgent({
  name: 'restrictive',
  kind: 'custom',
  sub_agents: [{ name: 'speaker' }],
  async run(operations, { goal }) {
    const answers = [];
    for (const restriction of [
      {},
      { models: ['sim-tidal-mills'], tools: ['search_library'] },
      { models: ['gpt-9'] },
      { tools: ['send_mail'] },
      { tools: [] },
      { models: [] },
    ]) {
      const child = await operations.spawn('speaker', goal, restriction);
      const answer = child.ok ? await operations.ask(child.child) : child;
      answers.push(answer.ok ? answer.text : `${answer.error}: ${answer.message}`);
    }
    return answers.join('\n');
  },
});

const LOW_URGENT = [{ name: 'slow' }, { name: 'urgent', priority: 'low' }] as const;
const ROOTS = [
  nested('depth-1', { spawn: { max_depth: 1 } }),
  nested('depth-2', { spawn: { max_depth: 2 } }),
  nested('three-spawns', { spawn: { max_total_spawns: 3 } }),
  busy('preempting', {}),
  busy('not-preempting', { spawn: { allow_preempt: false } }),
  busy('low-in-file', { sub_agents: LOW_URGENT }),
  busy('low-by-parent', {}, 'LOW'),
  impatient,
  restrictive,
];

let platform: ScriptedPlatform;
beforeAll(async () => {
  platform = await startScriptedPlatform({
    agentsInCode: [...ROOTS, slow, urgent, person, speaker],
    entries: [
      {
        when: { system_contains: 'You are slow' },
        reply: { text: 'Too late.', delay_ms: 600_000 },
      },
      { reply: { text: 'Spoken.' } },
    ],
  });
});
afterAll(() => platform.close());

/** Runs the agent to its end. */
async function resultOf(agent: string): Promise<RunResult | undefined> {
  const { runs } = platform.test.client;
  const { run } = await runs.startRun({ requestId: agent, agent, goal: 'root' });
  const runId = run?.runId ?? '';
  await Array.fromAsync(runs.watchRun({ runId }));
  return (await runs.getRun({ runId })).run?.result;
}

describe('the settings of a run with several agents', () => {
  it.each([1, 2])('limit its depth to max_depth %i (SB-7, AG-1)', async (depth) => {
    expect(await resultOf(`depth-${depth}`)).toMatchObject({
      stopReason: 'success',
      answer: `root${' down'.repeat(depth)}: no_slot: Spawn budget exceeded: an agent at depth ${depth + 1} exceeds max_depth ${depth}.`,
    });
  });

  it('limit the total number of spawned agents to max_total_spawns (SB-7, AG-1)', async () => {
    expect(await resultOf('three-spawns')).toMatchObject({
      stopReason: 'success',
      answer:
        'root down down down: no_slot: Spawn budget exceeded: 3 agents were spawned in this run; max_total_spawns is 3.',
    });
  });

  it('let a HIGH agent preempt a LOW one, unless allow_preempt is false (SB-2, AG-1)', async () => {
    expect(await resultOf('preempting')).toMatchObject({
      stopReason: 'success',
      answer: 'Urgent work is done.',
    });
    expect(await resultOf('not-preempting')).toMatchObject({
      stopReason: 'success',
      answer: expect.stringMatching(/^no_slot: .*preemption is disabled \(allow_preempt\)/),
    });
  });

  it('cap the priority of a child by its entry in sub_agents, and by its parent (SUP-9, SB-2, AG-1)', async () => {
    const refused = {
      stopReason: 'success',
      answer: expect.stringMatching(/^no_slot: .*a LOW agent cannot preempt/),
    };
    expect(await resultOf('low-in-file')).toMatchObject(refused);
    expect(await resultOf('low-by-parent')).toMatchObject(refused);
  });
});

describe('the settings of a delegation', () => {
  it('end the wait for an answer after ask_timeout (AG-3, AG-1)', async () => {
    expect(await resultOf('impatient')).toMatchObject({
      stopReason: 'success',
      answer: 'timed_out: person did not answer in time.',
    });
  });

  it('restrict a child to some of its models and tools (SUP-9, AG-1)', async () => {
    const { answer = '' } = (await resultOf('restrictive')) ?? {};
    expect(answer.split('\n')).toEqual([
      'publish_brief,search_library Spoken.',
      'search_library error:model_not_allowed',
      'error:model_not_allowed: Model gpt-9 is not allowed for speaker. Allowed models: research, sim-tidal-mills.',
      'error:tool_not_allowed: tools contains send_mail, which is not a tool of speaker.',
      'error:invalid_spawn: tools must not be an empty list; omit it to allow all tools of speaker.',
      'error:invalid_spawn: models must not be an empty list; omit it to allow all models of speaker.',
    ]);
    // Counts the requests that the second script entry answers, which are those of `speaker`.
    const spoken = platform.requests().filter(({ entry }) => entry === 1);
    expect(spoken).toHaveLength(1);
  });
});
