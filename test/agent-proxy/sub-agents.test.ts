import { newId } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import type OpenAI from 'openai';
import { expect, it, vi } from 'vitest';
import { ALIAS, createAgentKey, proxyPlatform, stopReasonOf } from './external-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const AGENTS = `
agents:
  - name: team-bot
    kind: external
    model: { model: ${ALIAS} }
    spawn: { max_agents: 4, max_depth: 2 }
    sub_agents: [{ name: helper-bot }]
  - name: helper-bot
    kind: external
    delegate_only: true
    model: { model: ${ALIAS} }
    budget: { max_turns: 3 }
    options: { idle_timeout: 10m }
  - name: strict-bot
    kind: external
    model: { model: ${ALIAS} }
    sub_agents: [{ name: restless-bot }]
  - name: restless-bot
    kind: external
    delegate_only: true
    model: { model: ${ALIAS} }
    options: { idle_timeout: 1s }
`;

const POLICY = `
policy: sub-agents
rules:
  - id: helpers
    match: { kind: delegation, agent: team-bot, target: [helper-bot] }
    decide: approve
    reason: known_helper
  - id: careless
    match: { kind: delegation, target: [restless-bot] }
    when: action.task.contains("delete")
    decide: block
    reason: careless_task
  - id: others
    match: { kind: delegation, target: [restless-bot] }
    decide: approve
    reason: harmless_task
`;

const answering = () =>
  scriptedModel((request, response) => answerText(request, response, 'Good day.'));
const platform = async () =>
  proxyPlatform(await answering(), { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY });

async function ask(client: OpenAI, content = newId('msg')): Promise<string> {
  const { response } = await client.chat.completions
    .create({ model: ALIAS, messages: [{ role: 'user', content }] })
    .withResponse();
  return response.headers.get('x-writ-run-id') ?? '';
}

const treeOf = async ({ client }: TestPlatform, runId: string) =>
  (await client.runs.listRunAgents({ runId })).agents;

it('creates a child for each sub-agent that an unmodified client names, and ends one of them without the others (AP-6, SUP-9)', async () => {
  const test = await platform();
  const { control, runs } = test.client;
  const { client } = await createAgentKey(test, 'team-bot');
  // The headers that Claude Code sends.
  const session = { 'x-claude-code-session-id': 'session-1' };
  const main = client(session);
  const helper = (id: string) => client({ ...session, 'x-claude-code-agent-id': id });
  const runId = await ask(main, 'Fix the build.');
  // Concurrent first requests of a sub-agent create one child.
  const asked = ['a', 'a', 'b', 'b', 'c', 'c'].map((id) => ask(helper(id), `Read part ${id}.`));
  expect(new Set(await Promise.all(asked))).toEqual(new Set([runId]));
  const tree = await treeOf(test, runId);
  expect(tree.map(({ agent }) => agent?.name)).toEqual([
    'team-bot',
    'helper-bot',
    'helper-bot',
    'helper-bot',
  ]);
  const root = tree[0]?.agent?.instance;
  const children = tree.slice(1);
  expect(new Set(children.map(({ parent }) => parent?.instance))).toEqual(new Set([root]));
  const { pool } = await test.client.usage.getPool({ runId });
  expect(pool?.holders).toHaveLength(4);
  // A fourth sub-agent exceeds the headcount of the run.
  await expect(ask(helper('d'))).rejects.toMatchObject({ status: 402, code: 'sub_agent_limit' });
  const { tab } = await test.client.usage.getRunUsage({ runId });
  expect(tab?.runTotals?.turns).toBe(7n);
  const cancelled = children[0]?.agent?.instance ?? '';
  const agent = { tenant: 'default', runId, agentInstance: cancelled };
  await control.halt({
    requestId: newId('req'),
    scope: { kind: { case: 'agent', value: agent } },
    reason: 'This one is wrong.',
    endRuns: true,
  });
  const outcomes = async () => {
    const answers = await Promise.allSettled(['a', 'b', 'c'].map((id) => ask(helper(id))));
    return answers.map(({ status }) => status).sort();
  };
  expect(await outcomes()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  // The other two have reached their caps; a cap also ends only the sub-agent that reached it.
  expect(await outcomes()).toEqual(['rejected', 'rejected', 'rejected']);
  expect(await ask(main)).toBe(runId);
  await vi.waitFor(async () => {
    const states = (await treeOf(test, runId)).map(({ stopReason }) => stopReason).sort();
    expect(states).toEqual(['', 'budget_exhausted:turns', 'budget_exhausted:turns', 'halted']);
  });
  await runs.closeRun({ requestId: newId('req'), runId });
  expect(await stopReasonOf(test, runId)).toBe('closed');
  await expect(ask(client({ 'x-writ-run': runId, 'x-writ-agent': 'b' }))).rejects.toMatchObject({
    status: 403,
    code: 'run_ended',
  });
});

it('reviews each sub-agent by its task, and ends an idle sub-agent without the others (AP-6, SV-1)', async () => {
  const test = await platform();
  const { client } = await createAgentKey(test, 'strict-bot');
  const runId = await ask(client());
  const named = (id: string) => client({ 'x-writ-agent': id });
  const refused = { status: 403, code: 'sub_agent_refused' };
  await expect(ask(named('a'), 'Please delete it all.')).rejects.toMatchObject(refused);
  // A rejected sub-agent stays rejected, also with another task.
  await expect(ask(named('a'), 'Read it.')).rejects.toMatchObject({ status: 403 });
  expect(await ask(named('b'), 'Read it.')).toBe(runId);
  await vi.waitFor(async () => {
    const ends = (await treeOf(test, runId)).map(({ stopReason }) => stopReason);
    expect(ends).toEqual(['', 'idle']);
  });
  await vi.waitFor(async () => {
    const { pool } = await test.client.usage.getPool({ runId });
    expect(pool?.holders).toHaveLength(1);
  });
  // The next request of the ended sub-agent creates another child. A sub-agent of an agent without `sub_agents` gets no
  // child; its requests belong to the agent.
  await vi.waitFor(async () => expect(await ask(named('b'), 'Read it.')).toBe(runId));
  await ask(client({ 'x-writ-agent': 'c', 'x-writ-parent': 'b' }));
  expect(await treeOf(test, runId)).toHaveLength(3);
});
