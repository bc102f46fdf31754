import { resolve } from 'node:path';
import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { type AgentSettings, createAgent } from '@writ/platform';
import { expect, it, onTestFinished } from 'vitest';
import { startScriptedPlatform } from './scripted/scripted-platform.ts';

const KERNEL = resolve(import.meta.dirname, '../../libs/kernel/src/index.ts');
const MODULE = `
import { defineAgent } from ${JSON.stringify(KERNEL)};
export const agents = [defineAgent({
  name: 'custom',
  async run(agent) {
    await agent.emit({ text: 'Done.' });
    return 'Done.';
  },
})];
`;

const WRITES = { model: { model: 'research' }, instructions: 'You write.' };
/** Settings with which an agent of each kind publishes one item. */
const PUBLISHERS: Readonly<
  Record<Exclude<AgentSettings['kind'], 'external'>, Partial<AgentSettings>>
> = {
  react: WRITES,
  'json-action': { ...WRITES, instructions: 'You act.' },
  orchestrator: WRITES,
  'user-proxy': {},
  information: { ...WRITES, options: { max_items: 1 } },
  'personal-feed': { ...WRITES, follow_topics: ['from-react'], options: { max_items: 1 } },
  flow: { sub_agents: [{ name: 'helper' }], options: { steps: ['helper'] } },
  custom: {},
};
const KINDS = Object.keys(PUBLISHERS) as (keyof typeof PUBLISHERS)[];
const TOPICS = KINDS.map((kind) => `from-${kind}`);

const AGENTS = [
  ...KINDS.map((kind) =>
    createAgent({ name: kind, kind, output_topic: `from-${kind}`, ...PUBLISHERS[kind] }),
  ),
  createAgent({ ...WRITES, name: 'helper', kind: 'react' }),
  createAgent({
    name: 'reader',
    kind: 'personal-feed',
    instructions: 'You read.',
    model: WRITES.model,
    follow_topics: TOPICS,
    options: { max_items: KINDS.length },
  }),
];
const ENTRIES = [
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the script.
  { when: { system_contains: 'You read.' }, reply: { text: '${json:topic}' } },
  { when: { system_contains: 'You act.' }, reply: { json: { kind: 'final', answer: 'Done.' } } },
  { when: { system_contains: 'You write.' }, reply: { text: 'Done.' } },
];

async function start() {
  const platform = await startScriptedPlatform({
    agentsInCode: AGENTS,
    entries: ENTRIES,
    modules: MODULE,
  });
  onTestFinished(() => platform.close());
  return platform.test.client.runs;
}

async function startRun(runs: WritClient['runs'], agent: string): Promise<string> {
  const { run } = await runs.startRun({ requestId: agent, agent, goal: 'Work.' });
  return run?.runId ?? '';
}

/** Waits until a feed follows its topics. */
async function untilSuspended(runs: WritClient['runs'], runId: string): Promise<void> {
  const state = async () => (await runs.getRun({ runId })).run?.state;
  await expect.poll(state).toBe(RunState.SUSPENDED);
}

/** Waits for the end of a run, and answers its questions. */
async function answerOf(runs: WritClient['runs'], runId: string): Promise<string | undefined> {
  for await (const { event } of runs.watchRun({ runId })) {
    if (event?.entry.case !== 'hook') continue;
    const { type, agent, waitingFor: name } = event.entry.value;
    if (type !== HookEventType.STEP_START || !name.startsWith('human_reply:')) continue;
    const payloadJson = JSON.stringify({ text: 'Done.' });
    const agentInstance = agent?.instance ?? '';
    await runs.signalRun({ requestId: 'reply', runId, agentInstance, name, payloadJson });
  }
  return (await runs.getRun({ runId })).run?.result?.answer;
}

it('output_topic publishes one item to the followers of the topic, for every kind of agent (AG-1, AG-5)', async () => {
  const runs = await start();
  const reader = await startRun(runs, 'reader');
  await untilSuspended(runs, reader);
  const feed = await startRun(runs, 'personal-feed');
  await untilSuspended(runs, feed);
  for (const kind of KINDS.filter((each) => each !== 'personal-feed')) {
    expect(await answerOf(runs, await startRun(runs, kind))).toMatch(/Done\./);
  }
  expect(await answerOf(runs, feed)).toBe('Done.');
  const answer = await answerOf(runs, reader);
  expect(answer?.split('\n').toSorted()).toEqual(TOPICS.toSorted());
}, 60_000);
