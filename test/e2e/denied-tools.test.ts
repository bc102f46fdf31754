import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readShelf } from '@writ/example-research-team/shelf';
import { loadExample } from '@writ/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ScriptedPlatform, startScriptedPlatform } from './scripted/scripted-platform.ts';
import { until } from './scripted/until.ts';

const AGENTS = `
agents:
  - name: allowed
    kind: react
    instructions: You publish.
    model: &model { model: research }
    tools: [search_library, publish_brief]
  - name: denied
    kind: react
    instructions: You publish.
    model: *model
    tools: [search_library, publish_brief]
  - name: outsider
    kind: react
    instructions: You publish.
    model: *model
    tools: [search_library]
`;
const ALLOW = `
allow:
  agents:
    denied: [search_library, read_document]
    "*": [search_library, read_document, publish_brief]
`;
const POLICY = `
policy: published-by-people
rules:
  - id: publish
    match: { tool: publish_brief }
    decide: escalate
    reason: published_by_people
  - { id: all, decide: approve, reason: fine }
`;
const ENTRIES = [
  {
    when: { system_contains: 'You publish', turn: 0 },
    reply: {
      tool_calls: [{ name: 'publish_brief', arguments: { title: 'Tides', text: 'They turn.' } }],
    },
  },
  {
    when: { system_contains: 'You publish', tool_result_contains: 'tool_denied:publish_brief' },
    reply: { text: 'It may not be published.' },
  },
];

let platform: ScriptedPlatform;
beforeAll(async () => {
  const { folder } = loadExample('research-team');
  const tools = readFileSync(join(folder, 'tools.yaml'), 'utf8')
    .replace('./src/tools.ts', join(folder, 'src/tools.ts'))
    .concat(ALLOW);
  platform = await startScriptedPlatform({
    agents: AGENTS,
    policy: POLICY,
    tools,
    entries: ENTRIES,
  });
});
afterAll(() => platform.close());

async function startRun(agent: string): Promise<string> {
  const { runs } = platform.test.client;
  const { run } = await runs.startRun({ requestId: agent, agent, goal: 'Publish it.' });
  return run?.runId ?? '';
}

async function approvalsOf(runId: string) {
  return (await platform.test.client.approvals.listApprovals({ runId, states: [] })).approvals;
}

it('a call that the policy escalates waits for a person (SV-5)', async () => {
  const runId = await startRun('allowed');
  const [approval] = await until('the approval', async () => {
    const approvals = await approvalsOf(runId);
    return approvals.length > 0 ? approvals : undefined;
  });
  expect(approval).toMatchObject({ reason: 'published_by_people' });
});

it.each([
  ['allow in tools.yaml denies to the agent', 'denied'],
  ['is outside the list of the agent', 'outsider'],
])(
  'a call of a tool that %s is refused before a person is asked, and not executed (SV-1, TG-2)',
  async (_, agent) => {
    const runId = await startRun(agent);
    const { runs } = platform.test.client;
    await Array.fromAsync(runs.watchRun({ runId }));
    expect(await approvalsOf(runId)).toEqual([]);
    const { run } = await runs.getRun({ runId });
    expect(run?.result).toMatchObject({ answer: 'It may not be published.' });
    expect(run?.result?.trace).toMatchObject([
      { tool: 'publish_brief', ok: false, stopReason: 'tool_denied:publish_brief' },
      { tool: 'final' },
    ]);
    expect(readShelf(platform.test.dataDir)).toEqual([]);
  },
);
