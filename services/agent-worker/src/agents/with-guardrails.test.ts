import { describe, expect, it } from 'vitest';
import { manifestOf } from '../../test/manifest.ts';
import { scriptedContext } from '../../test/scripted-context.ts';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { LlmOutcome, LlmRequest } from '../domain/calls/model-call.ts';
import type { AgentContext, Checkpoint, Restored } from '../runtime/agent.ts';
import { withGuardrails } from './with-guardrails.ts';

const answerOf = (text: string, more: object = {}): LlmOutcome => ({
  kind: 'answer',
  text,
  endReason: 'end_turn',
  nearBudget: false,
  ...more,
});
const cutOff = (text: string) => answerOf(text, { endReason: 'max_tokens' });
const searches = (...arguments_: string[]) =>
  answerOf('', {
    toolUses: arguments_.map((argumentsJson, n) => ({ id: `${n}`, tool: 'search', argumentsJson })),
  });
const ask = (more: Partial<LlmRequest> = {}): LlmRequest => ({
  model: 'small',
  messages: [{ role: 'user', text: 'Write.' }],
  json: false,
  requireContent: false,
  ...more,
});

interface Scene {
  readonly answers: LlmOutcome[];
  readonly settings?: Partial<AgentManifest>;
  /** The checkpoint from which the agent starts. */
  readonly restored?: Restored;
  readonly run: (ctx: AgentContext) => Promise<unknown>;
}

/** Runs an agent function with the guardrails of its manifest. */
async function act({ answers, settings = {}, restored, run }: Scene) {
  const manifest = manifestOf(settings);
  const scripted = scriptedContext({ manifest, answers });
  const checkpoints: Checkpoint[] = [];
  const ctx: AgentContext = {
    ...scripted.ctx,
    restore: async () => restored,
    checkpoint: (checkpoint) => checkpoints.push(checkpoint),
  };
  let returned: unknown;
  const factory = withGuardrails((_, id) => ({
    id,
    kind: 'react',
    run: async (inner) => {
      returned = await run(inner);
    },
  }));
  await factory(manifest, 'writer-1').run(ctx, []);
  return { asked: scripted.asked, returned, checkpoints };
}

describe('guardrails', () => {
  it('join the parts of an answer that the token limit truncated twice (AG-6)', async () => {
    const answers = [cutOff('one, '), cutOff('two, '), answerOf('three')];
    const { asked, returned } = await act({ answers, run: (ctx) => ctx.llm(ask()) });
    expect(returned).toMatchObject({ text: 'one, two, three' });
    expect(asked.tripped).toEqual(['max_tokens', 'max_tokens']);
    expect(asked.requests[1]?.messages.slice(1)).toMatchObject([
      { role: 'assistant', text: 'one, ' },
      { role: 'user', hidden: 'max_tokens_recovery' },
    ]);
  });

  it('request truncated JSON again as a whole, because its parts cannot be joined (AG-6)', async () => {
    const answers = [cutOff('{"a":'), answerOf('{"a":1}')];
    const { asked, returned } = await act({ answers, run: (ctx) => ctx.llm(ask({ json: true })) });
    expect(returned).toMatchObject({ text: '{"a":1}' });
    expect(asked.tripped).toEqual(['max_tokens']);
  });

  it('accept a truncated answer when recoveries are used up or disabled (AG-6)', async () => {
    const run = (ctx: AgentContext) => ctx.llm(ask());
    const settings = { guardrails: { maxTokensRecoveries: 1 } };
    const used = await act({ answers: [cutOff('one, '), cutOff('two')], settings, run });
    expect(used.returned).toMatchObject({ text: 'one, two', endReason: 'max_tokens' });
    const off = { guardrails: { maxTokensRecoveries: 0 } };
    const disabled = await act({ answers: [cutOff('half')], settings: off, run });
    expect(disabled.returned).toMatchObject({ text: 'half' });
    expect(disabled.asked.tripped).toEqual([]);
  });

  it('stop an agent that repeats the same tool calls, in any order and JSON formatting (AG-6)', async () => {
    const run = act({
      answers: [searches('{"q":"a","n":1}', 'no json'), searches('no json', '{"n": 1, "q": "a"}')],
      settings: { guardrails: { maxRepeatedToolSteps: 1 } },
      run: async (ctx) => {
        await ctx.llm(ask());
        await ctx.llm(ask());
      },
    });
    await expect(run).rejects.toMatchObject({
      stop: { stopReason: 'stuck', detail: expect.stringContaining('max_repeated_tool_steps') },
    });
  });

  it('stop a json-action agent that repeats the same action (AG-6)', async () => {
    const action = (id: number) =>
      answerOf(JSON.stringify({ kind: 'tool', name: 'search', args: { id } }));
    const run = act({
      answers: [action(1), action(2), action(2)],
      settings: { kind: 'json-action', guardrails: { maxRepeatedToolSteps: 1 } },
      run: async (ctx) => {
        for (let n = 0; n < 3; n += 1) await ctx.llm(ask());
      },
    });
    await expect(run).rejects.toMatchObject({
      stop: { stopReason: 'stuck', detail: expect.stringContaining('(search) 2 times in a row') },
    });
  });

  it('report once that the budget is nearly used up (AG-6, EM-5)', async () => {
    const near = answerOf('a', { nearBudget: true });
    const { asked } = await act({
      answers: [near, near],
      run: async (ctx) => {
        await ctx.llm(ask());
        await ctx.llm(ask());
      },
    });
    expect(asked.tripped).toEqual(['near_budget']);
  });

  it('do not observe the summaries of a conversation (AG-6, AG-8)', async () => {
    const { asked, returned } = await act({
      answers: [cutOff('They spo')],
      run: (ctx) => ctx.llm(ask({ purpose: 'summary' })),
    });
    expect(returned).toMatchObject({ text: 'They spo' });
    expect(asked.tripped).toEqual([]);
  });

  it('store their counters in checkpoints, together with the state of the agent (AG-6, RT-1)', async () => {
    const settings = { guardrails: { maxRepeatedToolSteps: 2 } };
    const first = await act({
      answers: [searches('{}'), searches('{}')],
      settings,
      run: async (ctx) => {
        await ctx.llm(ask());
        await ctx.llm(ask());
        ctx.checkpoint({ state: { step: 2 }, added: ['item'], needsFrom: 0 });
      },
    });
    const [checkpoint] = first.checkpoints;
    expect(checkpoint).toMatchObject({ added: ['item'], needsFrom: 0 });
    const state: unknown = JSON.parse(JSON.stringify(checkpoint?.state));
    let seen: Restored | undefined;
    const resumed = act({
      answers: [searches('{}')],
      settings,
      restored: { state, items: ['item'] },
      run: async (ctx) => {
        seen = await ctx.restore();
        await ctx.llm(ask());
      },
    });
    await expect(resumed).rejects.toMatchObject({ stop: { stopReason: 'stuck' } });
    expect(seen).toEqual({ state: { step: 2 }, items: ['item'] });
  });
});
