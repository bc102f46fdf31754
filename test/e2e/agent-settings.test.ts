import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { ChatRequest } from '@writ/testing/simulator';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startScriptedPlatform } from './scripted/scripted-platform.ts';

const AGENTS = `
agents:
  - name: clerk
    kind: react
    instructions: You are the clerk.
    model: { model: research, json_mode: true, temperature: 0.5, max_output_tokens: 77 }
    sub_agents: [{ name: person, description: Knows the color., ask_timeout: 1h }]
    initial_tool_choice: handoff_person
  - name: person
    kind: user-proxy
  - name: text-action
    kind: json-action
    instructions: You write actions.
    model: { model: research, json_mode: false }
  - name: walker
    kind: react
    instructions: You walk.
    model: { model: research }
    tools: [search_library]
    limits: { max_iterations: 2 }
  - name: saver
    kind: react
    instructions: You answer.
    model: { model: research }
    budget: { max_cost_usd: "1.00" }
  - name: spender
    kind: react
    instructions: You answer.
    model: { model: research }
    budget: { max_cost_usd: "1.00" }
    guardrails: { reserve_cost_fraction: 1 }
`;

const ENTRIES = [
  {
    when: { system_contains: 'You are the clerk', turn: 0 },
    reply: { tool_calls: [{ name: 'handoff_person', arguments: { task: 'Which color?' } }] },
  },
  {
    when: { system_contains: 'You are the clerk', tool_result_contains: 'Blue' },
    reply: { json: { color: 'blue' } },
  },
  {
    when: { system_contains: 'You write actions' },
    reply: { json: { kind: 'final', answer: 'Done.' } },
  },
  {
    when: { system_contains: 'You walk' },
    reply: { tool_calls: [{ name: 'search_library', arguments: { words: 'tides' } }] },
  },
  { when: { system_contains: 'You answer' }, reply: { text: 'Done.' } },
];

async function start() {
  const seen: ChatRequest[] = [];
  const platform = await startScriptedPlatform({
    agents: AGENTS,
    entries: ENTRIES,
    beforeAnswer: async (chat) => void seen.push(chat),
  });
  onTestFinished(() => platform.close());
  return { runs: platform.test.client.runs, seen };
}

describe('the settings of an agent', () => {
  it('make its sub-agents the tools of a react agent, whose model receives them with its own settings (AG-1, AG-2, AG-4)', async () => {
    const { runs, seen } = await start();
    const request = { requestId: 'ask', agent: 'clerk', goal: 'Find the color.' };
    let result: unknown;
    for await (const { event } of runs.runAgent({ start: request })) {
      if (event?.entry.case === 'result') result = event.entry.value;
      if (event?.entry.case !== 'hook') continue;
      const { type, agent, waitingFor: name, runId } = event.entry.value;
      if (type !== HookEventType.STEP_START || !name.startsWith('human_reply:')) continue;
      const payloadJson = JSON.stringify({ text: 'Blue.' });
      const agentInstance = agent?.instance ?? '';
      await runs.signalRun({ requestId: 'reply', runId, agentInstance, name, payloadJson });
    }
    expect(result).toMatchObject({ stopReason: 'success', answer: '{"color":"blue"}' });
    const settings = { jsonMode: true, tools: ['handoff_person'], temperature: 0.5, maxTokens: 77 };
    expect(seen).toMatchObject([settings, settings]);
    // Only the first call is bound to a tool.
    expect(seen.map(({ toolChoice }) => toolChoice)).toEqual(['handoff_person', undefined]);
  }, 60_000);

  it('decide whether a json-action agent requests JSON mode (AG-1, EM-8)', async () => {
    const { runs, seen } = await start();
    const request = { requestId: 'act', agent: 'text-action', goal: 'Do it.' };
    const { run } = await runs.startRun(request);
    await Array.fromAsync(runs.watchRun({ runId: run?.runId ?? '' }));
    expect((await runs.getRun({ runId: run?.runId ?? '' })).run?.state).toBe(RunState.COMPLETED);
    expect(seen.map(({ jsonMode }) => jsonMode)).toEqual([false]);
  }, 60_000);

  it('end a react agent at max_iterations model calls (AG-1, AG-2)', async () => {
    const { runs, seen } = await start();
    const { run } = await runs.startRun({ requestId: 'walk', agent: 'walker', goal: 'Walk.' });
    await Array.fromAsync(runs.watchRun({ runId: run?.runId ?? '' }));
    const { result } = (await runs.getRun({ runId: run?.runId ?? '' })).run ?? {};
    expect(result?.stopReason).toBe('max_steps');
    expect(seen).toHaveLength(2);
  }, 60_000);

  it('decide at which share of the cost cap the budget is near (AG-1, AG-6, EM-5)', async () => {
    const { runs } = await start();
    const trips = async (agent: string) => {
      const watched = runs.runAgent({ start: { requestId: agent, agent, goal: 'Answer.' } });
      const events = await Array.fromAsync(watched);
      return events.flatMap(({ event }) => {
        if (event?.entry.case !== 'hook') return [];
        const { type, dimension } = event.entry.value;
        return type === HookEventType.GUARDRAIL_TRIP ? [dimension] : [];
      });
    };
    expect(await trips('saver')).toEqual([]);
    expect(await trips('spender')).toEqual(['near_budget']);
  }, 60_000);
});
