import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import {
  AgentState,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { ChatRequest } from '@writ/simulator';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type ScriptedPlatform, startScriptedPlatform } from './scripted/scripted-platform.ts';
import { supervisorClient } from './scripted/worker-clients.ts';

/** Three slots, for the lead, the scout and the helper; the chief, which the helper spawns, preempts the scout. */
const AGENTS = `
agents:
  - name: lead
    kind: orchestrator
    instructions: You lead.
    model: &model { model: research }
    sub_agents:
      - { name: scout, priority: low }
      - { name: helper }
    spawn: { max_agents: 3 }
  - name: scout
    kind: react
    instructions: You scout.
    model: *model
    tools: [search_library]
    priority: low
    on_preempt: partial
  - name: helper
    kind: orchestrator
    instructions: You help.
    model: *model
    sub_agents: [{ name: chief }]
  - name: chief
    kind: react
    instructions: You decide.
    model: *model
    priority: high
`;

const ENTRIES = [
  {
    when: { system_contains: 'You lead', turn: 0 },
    reply: {
      tool_calls: [
        { name: 'handoff_scout', arguments: { task: 'Find mills.' } },
        { name: 'handoff_helper', arguments: { task: 'Decide.' } },
      ],
    },
  },
  { when: { system_contains: 'You lead' }, reply: { text: 'That is what there is.' } },
  {
    when: { system_contains: 'You scout', turn: 0 },
    reply: {
      text: 'The library may know.',
      tool_calls: [{ name: 'search_library', arguments: { words: 'tidal mills' } }],
    },
  },
  {
    when: { system_contains: 'You scout' },
    reply: { tool_calls: [{ name: 'search_library', arguments: { words: 'estuary' } }] },
  },
  {
    when: { system_contains: 'You help', turn: 0 },
    reply: { tool_calls: [{ name: 'handoff_chief', arguments: { task: 'Decide.' } }] },
  },
  { when: { system_contains: 'You help' }, reply: { text: 'The chief has decided.' } },
  { when: { system_contains: 'You decide' }, reply: { text: 'Yes.' } },
];

/** Lets the chief start during the scout's second model call, and end after the scout. */
function orderModelCalls() {
  const hasStarted = Promise.withResolvers<void>();
  const isPreempted = Promise.withResolvers<void>();
  const isOver = Promise.withResolvers<void>();
  const seen: ChatRequest[] = [];
  const beforeAnswer = async (chat: ChatRequest): Promise<void> => {
    seen.push(chat);
    const [system] = chat.messages;
    const turn = chat.messages.filter(({ role }) => role === 'assistant').length;
    if (system?.text.includes('You help') && turn === 0) await hasStarted.promise;
    if (system?.text.includes('You scout') && turn === 1) {
      hasStarted.resolve();
      await isPreempted.promise;
    }
    if (system?.text.includes('You decide')) {
      isPreempted.resolve();
      await isOver.promise;
    }
  };
  return { beforeAnswer, seen, finish: isOver.resolve };
}

async function start(policy?: string) {
  const { beforeAnswer, seen, finish } = orderModelCalls();
  const platform = await startScriptedPlatform({
    agents: AGENTS,
    entries: ENTRIES,
    beforeAnswer,
    ...(policy !== undefined && { policy }),
  });
  onTestFinished(() => platform.close());
  const { run } = await platform.test.client.runs.startRun({
    requestId: 'report',
    agent: 'lead',
    goal: 'Report on mills.',
  });
  return { platform, seen, finish, runId: run?.runId ?? '' };
}

async function untilScoutIs({ test }: ScriptedPlatform, runId: string, state: AgentState) {
  const running = { dataDir: test.dataDir, addresses: test.platform.addresses };
  const worker = await supervisorClient(running, AgentWorkerService, 'agent-worker');
  onTestFinished(() => worker.close());
  return await vi.waitFor(async () => {
    const { agents } = await worker.describeRun({ tenant: 'default', runId });
    const scout = agents.find(({ agent }) => agent?.name === 'scout');
    expect(scout?.state).toBe(state);
    return scout;
  });
}

async function resultOf({ test }: ScriptedPlatform, runId: string) {
  const { runs } = test.client;
  await Array.fromAsync(runs.watchRun({ runId }));
  return (await runs.getRun({ runId })).run;
}

/** The tool messages that the lead's model got. */
function resultsForLead(seen: readonly ChatRequest[]): string {
  const last = seen.findLast(({ messages }) => messages[0]?.text.includes('You lead'));
  const texts = last?.messages.filter(({ role }) => role === 'tool').map(({ text }) => text);
  return texts?.join('\n') ?? '';
}

const ASK_FOR_PARTIAL = `
policy: ask-for-partial
rules:
  - { id: partial, match: { kind: final, agent: scout }, decide: escalate, reason: look_first }
  - { id: all, decide: approve, reason: fine }
`;

describe('a preempted agent with on_preempt partial', () => {
  it('ends as paused with a partial result, and its parent continues with that result (SB-2, SB-4, AG-3)', async () => {
    const { platform, seen, finish, runId } = await start();
    const scout = await untilScoutIs(platform, runId, AgentState.PAUSED);
    expect(scout?.stopReason).toBe('paused');
    finish();
    const run = await resultOf(platform, runId);
    expect(run).toMatchObject({ state: RunState.COMPLETED, result: { stopReason: 'success' } });
    const results = resultsForLead(seen);
    expect(results).toMatch(/^\(partial\) The library may know\.\n\nsearch_library: \{/);
    expect(results).toContain('The chief has decided.');
    // The scout executed its first call, and started nothing after the pause.
    const tools = run?.result?.trace.filter(({ agent }) => agent?.name === 'scout') ?? [];
    expect(tools.map(({ tool, ok }) => [tool, ok])).toEqual([
      ['search_library', true],
      ['final', true],
    ]);
  }, 60_000);

  it('waits for a person without a slot when the policy escalates its result, and then replies (SB-4, SV-5)', async () => {
    const { platform, seen, finish, runId } = await start(ASK_FOR_PARTIAL);
    const { approvals } = platform.test.client;
    const approval = await vi.waitFor(async () => {
      const [pending] = (await approvals.listApprovals({ runId })).approvals;
      expect(pending?.state).toBe(ApprovalState.PENDING);
      return pending;
    });
    const parked = await untilScoutIs(platform, runId, AgentState.PARKED);
    expect(parked?.waitingFor).toEqual(['slot', expect.stringMatching(/^approval:part_/)]);
    await approvals.decideApproval({
      requestId: 'yes',
      approvalId: approval?.approvalId ?? '',
      answer: { case: 'approve', value: {} },
    });
    await untilScoutIs(platform, runId, AgentState.PAUSED);
    finish();
    expect((await resultOf(platform, runId))?.result?.stopReason).toBe('success');
    expect(resultsForLead(seen)).toContain('(partial) The library may know.');
  }, 60_000);
});
