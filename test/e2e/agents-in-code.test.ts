import { createAgent } from '@writ/platform';
import { expect, it, onTestFinished } from 'vitest';
import {
  type ScriptedPlatformOptions,
  startScriptedPlatform,
} from './scripted/scripted-platform.ts';

const MODEL = { model: 'research' };
const assistant = createAgent({
  name: 'assistant',
  kind: 'react',
  instructions: 'You are the assistant.',
  model: MODEL,
});
const lead = createAgent({
  name: 'lead',
  kind: 'flow',
  sub_agents: [{ name: 'assistant' }, { name: 'clerk' }],
  options: { steps: [{ parallel: ['assistant', 'clerk'] }] },
});
const CLERK = `
agents:
  - name: clerk
    kind: react
    instructions: You are the clerk.
    model: { model: research }
    sub_agents: [{ name: assistant }]
`;

async function start(options: Pick<ScriptedPlatformOptions, 'agents' | 'agentsInCode'>) {
  const entries = ['assistant', 'clerk'].map((name) => ({
    when: { system_contains: `You are the ${name}` },
    reply: { text: `The ${name} is done.` },
  }));
  const platform = await startScriptedPlatform({ ...options, entries });
  onTestFinished(() => platform.close());
  const { runs } = platform.test.client;
  return {
    names: async () => (await runs.listAgents({})).agents.map(({ name }) => name),
    answerOf: async (agent: string) => {
      const { run } = await runs.startRun({ requestId: 'r-1', agent, goal: 'Work.' });
      const runId = run?.runId ?? '';
      await Array.fromAsync(runs.watchRun({ runId }));
      return (await runs.getRun({ runId })).run?.result;
    },
  };
}

it('a platform runs an agent built in code instead of the agents of its example (AG-1)', async () => {
  const { names, answerOf } = await start({ agentsInCode: [assistant] });
  expect(await names()).toEqual(['assistant']);
  expect(await answerOf('assistant')).toMatchObject({
    stopReason: 'success',
    answer: 'The assistant is done.',
  });
});

it('a platform runs agents built in code together with those of a file (AG-1, AG-3)', async () => {
  const { names, answerOf } = await start({ agents: CLERK, agentsInCode: [assistant, lead] });
  expect((await names()).toSorted()).toEqual(['assistant', 'clerk', 'lead']);
  expect(await answerOf('lead')).toMatchObject({
    stopReason: 'success',
    answer: 'assistant: The assistant is done.\n\nclerk: The clerk is done.',
  });
});

it('a platform runs the function of a custom agent, which resumes after a wait (AG-1, RT-1)', async () => {
  const replays: number[] = [];
  const counter = createAgent({
    name: 'counter',
    kind: 'custom',
    model: MODEL,
    instructions: 'You are the clerk.',
    sub_agents: [{ name: 'assistant' }],
    async run(operations, { goal }) {
      replays.push(replays.length);
      await operations.sleep(1);
      const own = await operations.prompt({ text: goal });
      const child = await operations.handOff('assistant', goal);
      return child.ok ? `${own} ${child.text}` : child.message;
    },
  });
  const { answerOf } = await start({ agentsInCode: [assistant, counter] });
  expect(await answerOf('counter')).toMatchObject({
    stopReason: 'success',
    answer: 'The clerk is done. The assistant is done.',
  });
  expect(replays.length).toBeGreaterThan(1);
});
