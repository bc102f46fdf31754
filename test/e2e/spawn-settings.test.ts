import { type AgentInCode, type AgentManifest, createAgent } from '@writ/platform';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startScriptedPlatform } from './scripted/scripted-platform.ts';

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
/** Delegates to itself, and answers what became of that. */
const nested = (settings: Partial<AgentInCode>) =>
  createAgent({
    name: 'nested',
    kind: 'custom',
    sub_agents: [{ name: 'nested' }],
    ...settings,
    async run(operations, { goal }) {
      const child = await operations.handOff('nested', `${goal} down`);
      return child.ok ? child.text : `${goal}: ${child.error}: ${child.message}`;
    },
  });

async function answerOf(root: AgentManifest, ...others: readonly AgentManifest[]) {
  const platform = await startScriptedPlatform({
    agentsInCode: [root, ...others],
    entries: [
      {
        when: { system_contains: 'You are slow' },
        reply: { text: 'Too late.', delay_ms: 600_000 },
      },
      { reply: { text: 'Spoken.' } },
    ],
  });
  onTestFinished(() => platform.close());
  const { runs } = platform.test.client;
  const { run } = await runs.startRun({ requestId: 'r-1', agent: root.name, goal: 'root' });
  const runId = run?.runId ?? '';
  await Array.fromAsync(runs.watchRun({ runId }));
  const { result } = (await runs.getRun({ runId })).run ?? {};
  return { ...result, platform };
}

/** Fills the pool of two slots with an active agent, and then delegates to `urgent`. */
const busy = (settings: Partial<AgentInCode>, priority?: 'LOW') =>
  createAgent({
    name: 'busy',
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

describe('the settings of a run with several agents', () => {
  it.each([1, 2])('limit its depth to max_depth %i (SB-7, AG-1)', async (depth) => {
    const { stopReason, answer } = await answerOf(nested({ spawn: { max_depth: depth } }));
    expect(stopReason).toBe('success');
    expect(answer).toBe(
      `root${' down'.repeat(depth)}: no_slot: Spawn budget exceeded: an agent at depth ${depth + 1} exceeds max_depth ${depth}.`,
    );
  });

  it('limit the agents that are spawned in all to max_total_spawns (SB-7, AG-1)', async () => {
    const { stopReason, answer } = await answerOf(nested({ spawn: { max_total_spawns: 3 } }));
    expect(stopReason).toBe('success');
    expect(answer).toBe(
      'root down down down: no_slot: Spawn budget exceeded: 3 agents were spawned in this run; max_total_spawns is 3.',
    );
  });

  it('let a HIGH agent preempt a LOW one, unless allow_preempt is false (SB-2, AG-1)', async () => {
    const preempting = await answerOf(busy({}), slow, urgent);
    expect(preempting).toMatchObject({ stopReason: 'success', answer: 'Urgent work is done.' });
    const refused = await answerOf(busy({ spawn: { allow_preempt: false } }), slow, urgent);
    expect(refused).toMatchObject({
      stopReason: 'success',
      answer: expect.stringMatching(/^no_slot: .*preemption is disabled \(allow_preempt\)/),
    });
  });

  it('cap the priority of a child by its place in sub_agents, and by its parent (SUP-9, SB-2, AG-1)', async () => {
    const refused = {
      stopReason: 'success',
      answer: expect.stringMatching(/^no_slot: .*a LOW agent cannot preempt/),
    };
    const sub_agents = [{ name: 'slow' }, { name: 'urgent', priority: 'low' }] as const;
    expect(await answerOf(busy({ sub_agents }), slow, urgent)).toMatchObject(refused);
    expect(await answerOf(busy({}, 'LOW'), slow, urgent)).toMatchObject(refused);
  });
});

describe('the settings of a delegation', () => {
  it('end the wait for an answer after ask_timeout (AG-3, AG-1)', async () => {
    const lead = createAgent({
      name: 'lead',
      kind: 'custom',
      sub_agents: [{ name: 'person', ask_timeout: '50ms' }],
      async run(operations, { goal }) {
        const answer = await operations.handOff('person', goal);
        return answer.ok ? answer.text : `${answer.error}: ${answer.message}`;
      },
    });
    expect(await answerOf(lead, person)).toMatchObject({
      stopReason: 'success',
      answer: 'timed_out: person did not answer in time.',
    });
  });

  it('restrict a child to some of its models and tools (SUP-9, AG-1)', async () => {
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
    const lead = createAgent({
      name: 'lead',
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
    const { answer = '', platform } = await answerOf(lead, speaker);
    expect(answer.split('\n')).toEqual([
      'publish_brief,search_library Spoken.',
      'search_library error:model_not_allowed',
      'error:model_not_allowed: models is not allowed for speaker. Allowed models: research, sim-tidal-mills.',
      'error:tool_not_allowed: tools contains send_mail, which is not a tool of speaker.',
      'error:invalid_spawn: tools must not be an empty list; omit it to allow all tools of speaker.',
      'error:invalid_spawn: models must not be an empty list; omit it to allow all models of speaker.',
    ]);
    expect(platform.requests()).toHaveLength(1);
  });
});

it('an agent is restarted max_retries times when its code fails (SUP-7, AG-1)', async () => {
  const attempts: string[] = [];
  const failing = (retries: number) =>
    createAgent({
      name: `failing-${retries}`,
      kind: 'custom',
      limits: { max_retries: retries },
      async run({ agent }) {
        attempts.push(agent.name);
        throw new Error('The code failed.');
      },
    });
  for (const retries of [0, 1]) {
    const root = failing(retries);
    expect(await answerOf(root)).toMatchObject({ stopReason: 'error:agent_failed' });
    expect(attempts.filter((name) => name === root.name)).toHaveLength(retries + 1);
  }
});
