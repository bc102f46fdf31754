import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { ChatRequest } from '@writ/simulator';
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
  - name: default-cut
    kind: react
    instructions: You are cut.
    model: &short { model: research, max_output_tokens: 1 }
  - name: never-continued
    kind: react
    instructions: You are cut.
    model: *short
    guardrails: { max_tokens_recoveries: 0 }
  - name: once-continued
    kind: react
    instructions: You are cut.
    model: *short
    guardrails: { max_tokens_recoveries: 1 }
  - name: impatient-react
    kind: react
    instructions: You wait.
    model: &impatient { model: research, timeout: 50ms }
  - name: impatient-orchestrator
    kind: orchestrator
    instructions: You wait.
    model: *impatient
    sub_agents: [{ name: person }]
  - name: impatient-json-action
    kind: json-action
    instructions: You wait.
    model: *impatient
  - name: impatient-information
    kind: information
    instructions: You wait.
    model: *impatient
    output_topic: items
    options: { max_items: 1 }
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
  { when: { system_contains: 'You are cut' }, reply: { text: 'On and on.' } },
  {
    when: { system_contains: 'You wait' },
    reply: { text: 'Too late.', delay_ms: 600_000 },
  },
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
  it('offer the sub-agents of a react agent to its model as tools, with the model settings of the agent (AG-1, AG-2, AG-4)', async () => {
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
    // Only the first model call forces the use of a tool.
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

  it('set the share of the cost cap at which near_budget is reported (AG-1, AG-6, EM-5)', async () => {
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

  it('set how often a truncated answer is continued (AG-1, AG-6)', async () => {
    const { runs, seen } = await start();
    const requestsOf = async (agent: string) => {
      const before = seen.length;
      const watched = runs.runAgent({ start: { requestId: agent, agent, goal: 'Answer.' } });
      const events = await Array.fromAsync(watched);
      const [result] = events.flatMap(({ event }) =>
        event?.entry.case === 'result' ? [event.entry.value] : [],
      );
      return { answer: result?.answer, requests: seen.length - before };
    };
    // A token is four characters.
    expect(await requestsOf('default-cut')).toEqual({ answer: 'On aOn aOn a', requests: 3 });
    expect(await requestsOf('never-continued')).toEqual({ answer: 'On a', requests: 1 });
    expect(await requestsOf('once-continued')).toEqual({ answer: 'On aOn a', requests: 2 });
  }, 60_000);

  it('end each model call at the timeout of the agent, not at that of the catalog (AG-1, EM-8)', async () => {
    const { runs } = await start();
    const stopReasonOf = async (kind: string) => {
      const agent = `impatient-${kind}`;
      const watched = runs.runAgent({ start: { requestId: agent, agent, goal: 'Answer.' } });
      const events = await Array.fromAsync(watched);
      return events.flatMap(({ event }) =>
        event?.entry.case === 'result' ? [event.entry.value.stopReason] : [],
      );
    };
    // Three attempts of 60 s would exceed the limit of this test.
    const kinds = ['react', 'orchestrator', 'json-action', 'information'];
    const stopReasons = await Promise.all(kinds.map(stopReasonOf));
    expect(stopReasons).toEqual(kinds.map(() => ['llm_timeout']));
  }, 60_000);
});
