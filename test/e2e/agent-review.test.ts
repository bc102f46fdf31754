import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunResult, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import type { ChatRequest, Script } from '@writ/simulator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedPlatform, startScriptedPlatform } from './scripted/scripted-platform.ts';

const FOLDER = resolve(import.meta.dirname, 'review');
const find = (id: number) => ({ tool_calls: [{ name: 'find_owner', arguments: { id } }] });
const action = (id: number) => ({ json: { kind: 'tool', name: 'find_owner', args: { id } } });
const final = { json: { kind: 'final', answer: 'Done.' } };

/** The answers of the model, selected by the first word of the instructions. */
const ENTRIES: Script['entries'] = [
  { when: { system_contains: 'Summarise this' }, reply: { text: 'They looked up owners.' } },
  { when: { system_contains: 'CALLER', turn: 0 }, reply: find(1) },
  // Selects the answer by the latest tool result, because a context strategy hides earlier turns.
  { when: { system_contains: 'LOOPER', tool_result_contains: '"id":4' }, reply: { text: 'Done.' } },
  ...[3, 2, 1].map((id) => ({
    when: { system_contains: 'LOOPER', tool_result_contains: `"id":${id}` },
    reply: find(id + 1),
  })),
  { when: { system_contains: 'LOOPER' }, reply: find(1) },
  { when: { system_contains: 'REPEATER', turn: 0 }, reply: find(1) },
  { when: { system_contains: 'REPEATER', turn: 1 }, reply: find(1) },
  {
    when: { system_contains: 'UNSTEADY', turn: 0 },
    reply: { tool_calls: [{ name: 'unsteady', arguments: {} }] },
  },
  {
    when: { system_contains: 'FAILING' },
    times: 1,
    reply: { error: { status: 400, message: 'Bad day.' } },
  },
  { when: { system_contains: 'DRAFTER', turn: 0 }, reply: { text: 'A title.' } },
  { when: { system_contains: 'DRAFTER' }, reply: { json: { title: 'Owners' } } },
  {
    when: { system_contains: 'CUT', last_role: 'user', turn: 0 },
    reply: { text: '{"kind":"fin', finish_reason: 'length' },
  },
  { when: { system_contains: 'CUT' }, reply: final },
  { when: { system_contains: 'STUCK' }, reply: action(1) },
  {
    when: { system_contains: 'ACTOR', json_path: { 'state_summary.steps_completed': 0 } },
    reply: action(1),
  },
  { when: { system_contains: 'ACTOR' }, reply: final },
  { reply: { text: 'Done for d@example.org, order-17.' } },
];

let platform: ScriptedPlatform;
const asked: ChatRequest[] = [];

beforeAll(async () => {
  platform = await startScriptedPlatform({
    agents: readFileSync(resolve(FOLDER, 'agents.yaml'), 'utf8'),
    entries: ENTRIES,
    beforeAnswer: async (chat) => void asked.push(chat),
    env: {
      WRIT_TOOLS_FILE: resolve(FOLDER, 'tools.yaml'),
      WRIT_AGENT_MODULES: resolve(FOLDER, 'agents.ts'),
    },
  });
});
afterAll(() => platform.close());

interface Outcome {
  readonly runId: string;
  readonly result: RunResult | undefined;
  /** The hook events on the timeline of the run, in order. */
  readonly hooks: readonly HookEvent[];
  /** The requests that the model got, as text. */
  readonly prompts: readonly string[];
}

/** Runs an agent to its end. */
async function run(agent: string, sessionId = ''): Promise<Outcome> {
  const { runs } = platform.test.client;
  const before = asked.length;
  const request = { requestId: newId('req'), agent, goal: 'Find the owner.', sessionId };
  const started = await runs.startRun(request);
  const runId = started.run?.runId ?? '';
  const watched = await Array.fromAsync(runs.watchRun({ runId }));
  const hooks = watched.flatMap(({ event }) =>
    event?.entry.case === 'hook' ? [event.entry.value] : [],
  );
  const { run: ended } = await runs.getRun({ runId });
  const prompts = asked
    .slice(before)
    .map(({ messages }) => messages.map(({ role, text }) => `${role}: ${text}`).join('\n'));
  return { runId, result: ended?.result, hooks, prompts };
}

/** The guardrails on the timeline, in order. */
function trips({ hooks }: Outcome): string[] {
  return hooks.flatMap(({ type, dimension }) =>
    type === HookEventType.GUARDRAIL_TRIP ? [dimension] : [],
  );
}

function count({ hooks }: Outcome, type: keyof typeof HookEventType): number {
  return hooks.filter((hook) => hook.type === HookEventType[type]).length;
}

describe('middleware, as docs/how-to/agents.md describes it', () => {
  it('logging writes one entry per run, model call and tool call (AG-9)', async () => {
    const { runId, result } = await run('logging');
    expect(result?.stopReason).toBe('success');
    const { entries } = await platform.test.client.runs.listLogEntries({ runId });
    expect(entries.map(({ message }) => message)).toEqual([
      'agent begins',
      'model call',
      'tool call',
      'model call',
      'agent returned',
    ]);
  });

  it.each(['redaction-results', 'redaction-actions'])(
    '%s: redaction of functions hides tool results from the model (AG-9)',
    async (agent) => {
      const { prompts, result } = await run(agent);
      expect(result?.stopReason).toBe('success');
      expect(prompts).toHaveLength(2);
      expect(prompts[1]).toContain('[redacted]');
      expect(prompts[1]).not.toContain('a@example.org');
    },
  );

  it('redaction of chats redacts the instructions for the provider, and the answer (AG-9)', async () => {
    const { prompts, result } = await run('redaction-chat');
    expect(prompts[0]).toContain('redaction-chat of [redacted].');
    expect(result?.answer).toBe('Done for [redacted], [redacted].');
  });

  it('retry of functions proposes a failed call a second time (AG-9)', async () => {
    const outcome = await run('retry-tool');
    expect(outcome.result?.stopReason).toBe('success');
    expect(count(outcome, 'TOOL_START')).toBe(2);
    expect(outcome.prompts).toHaveLength(2);
    expect(outcome.prompts[1]).toContain('"status":"ok"');
  });

  it('retry of chats calls the model a second time after a failure (AG-9)', async () => {
    const outcome = await run('retry-model');
    expect(outcome.result?.stopReason).toBe('success');
    expect(outcome.prompts).toHaveLength(2);
  });

  it('cache of functions executes an identical call once (AG-9)', async () => {
    const outcome = await run('cache-tool');
    expect(outcome.result?.stopReason).toBe('success');
    expect(outcome.prompts).toHaveLength(3);
    expect(count(outcome, 'TOOL_START')).toBe(1);
  });

  it('cache of chats calls the model once for identical requests (AG-9)', async () => {
    const outcome = await run('asks-twice');
    expect(outcome.result?.stopReason).toBe('success');
    expect(outcome.prompts).toHaveLength(1);
  });

  it('rate_limit makes the next run of the tenant wait (AG-9)', async () => {
    const { runs } = platform.test.client;
    expect((await run('rate-limit')).prompts).toHaveLength(1);
    const before = asked.length;
    const started = await runs.startRun({
      requestId: newId('req'),
      agent: 'rate-limit',
      goal: 'Once more.',
    });
    const runId = started.run?.runId ?? '';
    await expect
      .poll(async () => (await runs.getRun({ runId })).run?.state)
      .toBe(RunState.SUSPENDED);
    await runs.cancelRun({ requestId: newId('req'), runId });
    await Array.fromAsync(runs.watchRun({ runId }));
    expect(asked).toHaveLength(before);
  });

  it('output_validation returns an invalid answer to the model (AG-9)', async () => {
    const { prompts, result } = await run('validation');
    expect(prompts[1]).toContain('it is not JSON.');
    expect(result?.answer).toBe('{"title":"Owners"}');
  });

  it('output_validation stops the agent, with a trip on the timeline (AG-6, AG-9)', async () => {
    const outcome = await run('validation-strict');
    expect(outcome.result?.stopReason).toBe('error:invalid_output');
    expect(trips(outcome)).toEqual(['middleware']);
  });
});

describe('guardrails of a json-action agent, as docs/how-to/agents.md describes them', () => {
  it('max_tokens requests a truncated action again, with a trip on the timeline (AG-6)', async () => {
    const outcome = await run('max-tokens');
    expect(outcome.result?.answer).toBe('Done.');
    expect(trips(outcome)).toEqual(['max_tokens']);
  });

  it('stuck stops an agent that repeats an action, with a trip on the timeline (AG-6)', async () => {
    const outcome = await run('stuck');
    expect(outcome.result?.stopReason).toBe('stuck');
    expect(trips(outcome)).toEqual(['stuck']);
    expect(count(outcome, 'TOOL_START')).toBe(1);
  });

  it('near_budget is reported once, on the timeline (AG-6, EM-5)', async () => {
    const outcome = await run('near-budget');
    expect(outcome.result?.stopReason).toBe('success');
    expect(trips(outcome)).toEqual(['near_budget']);
  });
});

describe('context strategies, as docs/how-to/agents.md describes them', () => {
  /** The request of the last iteration. */
  const lastOf = async (agent: string) => {
    const { prompts, result } = await run(agent);
    expect(result?.stopReason).toBe('success');
    return { last: prompts.at(-1) ?? '', calls: prompts.length };
  };
  const results = (prompt: string) => prompt.match(/^tool: /gm)?.length ?? 0;

  it('sliding_window shows the latest exchanges that fit (AG-8)', async () => {
    const { last } = await lastOf('sliding-window');
    expect(results(last)).toBeLessThan(4);
    expect(last).toContain('"id":4');
    expect(last).not.toContain('Find the owner.');
  });

  it('compact shows the first exchange, a marker and the latest exchanges (AG-8)', async () => {
    const { last } = await lastOf('compact');
    expect(results(last)).toBe(1);
    expect(last).toMatch(/user: Find the owner\.\nuser: \[\d+ earlier turns are /);
  });

  it('truncate shortens tool results (AG-8)', async () => {
    const { last } = await lastOf('truncate');
    expect(last.match(/\[cut: \d+ characters in all\]/g)).toHaveLength(4);
  });

  it('summary shows the summary of the model and the last exchanges (AG-8)', async () => {
    const { last, calls } = await lastOf('summary');
    expect(calls).toBeGreaterThan(5);
    expect(last).toContain('Summary of what came before:\nThey looked up owners.');
    expect(results(last)).toBeLessThan(4);
  });

  it('strategies truncates results inside a sliding window (AG-8)', async () => {
    const { last } = await lastOf('pipeline');
    const shown = results(last);
    expect(shown).toBeGreaterThan(1);
    expect(last.match(/\[cut: /g)).toHaveLength(shown);
    expect(last).not.toContain('Find the owner.');
  });
});

describe('the extensions of a module, as docs/how-to/agents.md describes them', () => {
  it('its middleware stops an agent, with its reason and a trip on the timeline (AG-6, AG-9)', async () => {
    const outcome = await run('own-middleware');
    expect(outcome.result?.stopReason).toBe('error:out_of_hours');
    expect(outcome.prompts).toEqual([]);
    expect(trips(outcome)).toEqual(['middleware']);
  });

  it('its strategy is part of a pipeline (AG-8)', async () => {
    const { prompts } = await run('own-strategy');
    expect(prompts.at(-1)?.match(/^tool: \(old\)$/gm)).toHaveLength(3);
  });

  it('its history provider returns the turns of a session (AG-8, SUP-2)', async () => {
    const sessionId = newId('ses');
    await run('own-history', sessionId);
    const { prompts } = await run('own-history', sessionId);
    expect(prompts[0]).toContain('user: (from documents) Find the owner.');
  });
});
