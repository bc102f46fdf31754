import { defineMiddleware, type JsonObject, MiddlewareTermination } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { manifestOf } from '../../../test/manifest.ts';
import { scriptedContext } from '../../../test/scripted-context.ts';
import type { AgentManifest, MiddlewareSetting } from '../../domain/agent/manifest.ts';
import type { LlmOutcome, LlmRequest } from '../../domain/calls/model-call.ts';
import { observationOf, type ToolOutcome } from '../../domain/calls/tool-call.ts';
import type { AgentContext, ProposalOutcome } from '../../runtime/agent.ts';
import { BUILT_IN_MIDDLEWARE, middlewareRegistry, withMiddleware } from './index.ts';
import type { MiddlewareRegistry } from './middleware.ts';

const answerOf = (text: string): LlmOutcome => ({
  kind: 'answer',
  text,
  endReason: 'end_turn',
  nearBudget: false,
});
const failed = (stopReason: string): LlmOutcome => ({ kind: 'failed', stopReason, detail: '' });
const ask = (text: string): LlmRequest => ({
  model: 'small',
  messages: [
    { role: 'system', text: 'Write.' },
    { role: 'user', text },
  ],
  json: false,
  requireContent: false,
});

const decision = {
  decisionId: 'dec-1',
  callId: 'op-1',
  verdict: 'approve',
  reason: '',
  approvalId: '',
  settled: true,
  stopReason: '',
  runEnded: false,
} as const;
/** The outcome of a tool call as the runtime returns it. */
const executed = (value: JsonObject): Extract<ProposalOutcome, { kind: 'executed' }> => {
  const result: ToolOutcome = {
    status: 'ok',
    stopReason: '',
    message: '',
    content: JSON.stringify(value),
    contentKind: 'json',
    receipt: 'receipt-op-1',
  };
  return { kind: 'executed', callId: 'op-1', decision, observation: observationOf(result), result };
};
const toolFailed: Extract<ProposalOutcome, { kind: 'failed' }> = {
  kind: 'failed',
  callId: 'op-1',
  decision,
  stop: {
    stopReason: 'tool_error:search',
    phase: 'execution',
    callId: 'op-1',
    detail: 'No account of b@example.org.',
  },
  result: {
    status: 'error',
    stopReason: 'tool_error:search',
    message: 'No account of b@example.org.',
    contentKind: 'none',
    receipt: 'receipt-op-1',
  },
};

interface Scene {
  readonly settings: Partial<AgentManifest>;
  readonly answers?: LlmOutcome[];
  readonly outcomes?: ProposalOutcome[];
  readonly registry?: MiddlewareRegistry;
  readonly run: (ctx: AgentContext) => Promise<unknown>;
}

/** Runs an agent function inside the middleware of its manifest. */
async function act({ settings, run, registry = BUILT_IN_MIDDLEWARE, ...script }: Scene) {
  const withSettings = manifestOf(settings);
  const { ctx, asked } = scriptedContext({ manifest: withSettings, ...script });
  let returned: unknown;
  const factory = withMiddleware(
    (_, id) => ({
      id,
      kind: 'react',
      run: async (inner) => {
        returned = await run(inner);
      },
    }),
    registry,
  );
  await factory(withSettings, 'writer-1').run(ctx, []);
  return { asked, returned };
}

const chat = (...settings: MiddlewareSetting[]) => ({ chatMiddleware: settings });
const functions = (...settings: MiddlewareSetting[]) => ({ functionMiddleware: settings });

describe('withMiddleware', () => {
  const order: string[] = [];
  const noting = (name: string) => () => ({
    process: async <C, R>(context: C, next: (context: C) => Promise<R>) => {
      order.push(`${name} before`);
      const result = await next(context);
      order.push(`${name} after`);
      return result;
    },
  });
  const registry: MiddlewareRegistry = {
    agent: { outer: noting('agent') },
    chat: {
      first: noting('first'),
      second: noting('second'),
      end: () => ({
        process: () =>
          Promise.reject(new MiddlewareTermination('out_of_hours', 'The office is closed.')),
      }),
      answer: () => ({
        process: async () => ({ ...answerOf('short'), callId: '' }),
      }),
    },
    function: {},
  };

  it('wraps the run and its calls in the order of the manifest (AG-9)', async () => {
    order.length = 0;
    const settings = {
      agentMiddleware: [{ name: 'outer', options: {} }],
      chatMiddleware: [
        { name: 'first', options: {} },
        { name: 'second', options: {} },
      ],
    };
    await act({ settings, registry, answers: [answerOf('a')], run: (ctx) => ctx.llm(ask('q')) });
    expect(order).toEqual([
      'agent before',
      'first before',
      'second before',
      'second after',
      'first after',
      'agent after',
    ]);
  });

  it('lets middleware answer instead of the wrapped call (AG-9)', async () => {
    const settings = chat({ name: 'answer', options: {} });
    const { asked, returned } = await act({ settings, registry, run: (ctx) => ctx.llm(ask('q')) });
    expect(returned).toMatchObject({ text: 'short' });
    expect(asked.requests).toEqual([]);
  });

  it('stops the agent when middleware terminates, without resuming outer middleware (AG-9)', async () => {
    order.length = 0;
    const settings = chat({ name: 'first', options: {} }, { name: 'end', options: {} });
    const run = act({ settings, registry, run: (ctx) => ctx.llm(ask('q')) });
    await expect(run).rejects.toMatchObject({
      stop: { stopReason: 'error:out_of_hours', detail: 'The office is closed.' },
    });
    expect(order).toEqual(['first before']);
  });

  it('rejects unknown middleware and invalid options by name (AG-9, SYS-3)', async () => {
    const run = async () => undefined;
    await expect(act({ settings: chat({ name: 'cahce', options: {} }), run })).rejects.toThrow(
      'chat_middleware: middleware "cahce" does not exist. Available middleware: cache, logging',
    );
    const wrong = chat({ name: 'retry', options: { max_retries: 0 } });
    await expect(act({ settings: wrong, run })).rejects.toThrow(
      'options of retry/max_retries must be >= 1.',
    );
  });

  it('gives each branch its own middleware, so that timing has no effect (AG-9, RT-1)', async () => {
    const { asked } = await act({
      settings: chat({ name: 'cache', options: {} }),
      answers: [answerOf('1'), answerOf('2')],
      run: (ctx) => ctx.all([1, 2].map(() => (branch) => branch.llm(ask('same')))),
    });
    expect(asked.requests).toHaveLength(2);
  });
});

describe('function middleware of a module', () => {
  const hint = defineMiddleware({
    name: 'hint',
    function: () => ({
      async process(context, next) {
        const answer = await next(context);
        return answer.ok ? answer : { ok: false, error: 'tool_error:x', message: 'Ask a person.' };
      },
    }),
  });
  const call = (outcome: ProposalOutcome) =>
    act({
      settings: functions({ name: 'hint', options: {} }),
      outcomes: [outcome],
      registry: middlewareRegistry(new Map([[hint.name, hint]])),
      run: (ctx) => ctx.tool('pay', '{}'),
    });

  it('changes only the message of a refusal by the supervisor (AG-9, AG-10)', async () => {
    const stop = { stopReason: 'supervisor_block:too_much', phase: 'supervisor' } as const;
    const refused = { kind: 'refused', callId: 'op-1', decision, stop } as const;
    const { returned } = await call(refused);
    expect(returned).toEqual({ ...refused, decision: { ...decision, reason: 'Ask a person.' } });
  });

  it('changes only the message of a refusal by the gateway (AG-9, AG-10)', async () => {
    const stop = { stopReason: 'supervisor_block:tool_limit', phase: 'execution' } as const;
    const { stopReason } = stop;
    const result = { ...toolFailed.result, status: 'refused', stopReason } as const;
    const refused = { ...toolFailed, stop, result } as const;
    const { returned } = await call(refused);
    expect(returned).toEqual({ ...refused, result: { ...result, message: 'Ask a person.' } });
  });

  it('replaces an error of the tool (AG-9)', async () => {
    const { returned } = await call(toolFailed);
    expect(returned).toMatchObject({
      kind: 'failed',
      stop: { stopReason: 'tool_error:x' },
      result: { status: 'error', message: 'Ask a person.', receipt: 'receipt-op-1' },
    });
  });
});

describe('built-in middleware', () => {
  it('caches model answers, but not failures (AG-9)', async () => {
    const { asked, returned } = await act({
      settings: chat({ name: 'cache', options: {} }),
      answers: [failed('llm_timeout'), answerOf('one'), answerOf('other')],
      run: async (ctx) => {
        await ctx.llm(ask('q'));
        await ctx.llm(ask('q'));
        await ctx.llm(ask('another'));
        return await ctx.llm(ask('q'));
      },
    });
    expect(asked.requests).toHaveLength(3);
    expect(returned).toMatchObject({ text: 'one' });
  });

  it('caches calls of the named tools (AG-9)', async () => {
    const { asked } = await act({
      settings: functions({ name: 'cache', options: { tools: ['search'] } }),
      outcomes: [executed({ hits: '1' }), executed({}), executed({})],
      run: async (ctx) => {
        for (const tool of ['search', 'search', 'write', 'write']) await ctx.tool(tool, '{}');
      },
    });
    expect(asked.calls.map(({ tool }) => tool)).toEqual(['search', 'write', 'write']);
  });

  it('retries only transient failures, with exponential back-off (AG-9)', async () => {
    const retries = chat({ name: 'retry', options: { max_retries: 2, base_ms: 100 } });
    const run = (ctx: AgentContext) => ctx.llm(ask('q'));
    const answers = [failed('provider_error:http_500'), failed('llm_timeout'), answerOf('at last')];
    const passing = await act({ settings: retries, answers, run });
    expect(passing.returned).toMatchObject({ text: 'at last' });
    expect(passing.asked.slept).toEqual([100, 200]);
    const lasting = [failed('budget_exhausted:cost')];
    const refused = await act({ settings: retries, answers: lasting, run });
    expect(refused.asked.requests).toHaveLength(1);
  });

  it('retries failed calls only of the named tools (AG-9)', async () => {
    const { asked } = await act({
      settings: functions({ name: 'retry', options: { tools: ['search'], base_ms: 0 } }),
      outcomes: [toolFailed, executed({}), toolFailed],
      run: async (ctx) => {
        await ctx.tool('search', '{}');
        await ctx.tool('pay', '{}');
      },
    });
    expect(asked.calls.map(({ tool }) => tool)).toEqual(['search', 'search', 'pay']);
  });

  it('acquires a permit of the configured rate limit before each call (AG-9)', async () => {
    const figures = { calls: 2, per_ms: 1_000 };
    const { asked } = await act({
      settings: {
        ...chat({ name: 'rate_limit', options: { ...figures, scope: 'provider' } }),
        ...functions({ name: 'rate_limit', options: figures }),
      },
      answers: [answerOf('a')],
      outcomes: [executed({})],
      run: async (ctx) => {
        await ctx.llm(ask('q'));
        await ctx.tool('search', '{}');
      },
    });
    expect(asked.turns).toEqual([
      { scope: 'provider', level: 'chat', calls: 2, perMs: 1_000, model: 'small' },
      { scope: 'agent', level: 'function', calls: 2, perMs: 1_000 },
    ]);
  });

  it('redacts email addresses, card and phone numbers, and patterns in model input and output (AG-9)', async () => {
    const { asked, returned } = await act({
      settings: chat({ name: 'redaction', options: { patterns: ['order-\\d+'] } }),
      answers: [answerOf('wrote to a.b@example.org')],
      run: (ctx) => ctx.llm(ask('Card 4111 1111 1111 1111, call +49 30 1234567, order-17, 42.')),
    });
    expect(asked.requests[0]?.messages[1]).toMatchObject({
      text: 'Card [redacted], call [redacted], [redacted], 42.',
    });
    expect(returned).toMatchObject({ text: 'wrote to [redacted]' });
  });

  it('redacts every part of a tool result that reaches the model (AG-9)', async () => {
    const { returned } = await act({
      settings: functions({ name: 'redaction', options: {} }),
      outcomes: [
        executed({ owner: 'a@example.org', 'b@example.org': 4_111_111_111_111_111, n: 7 }),
      ],
      run: (ctx) => ctx.tool('search', '{}'),
    });
    const shown = { owner: '[redacted]', '[redacted]': '[redacted]', n: 7 };
    expect(returned).toMatchObject({
      observation: shown,
      result: { content: JSON.stringify(shown), receipt: 'receipt-op-1' },
    });
    expect(JSON.stringify(returned)).not.toMatch(/example|4111/);
  });

  it.each([
    ['a long word', { page: 'a'.repeat(65_536) }],
    [
      'many property names that become equal',
      Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`a${n}@b.c`, n])),
    ],
  ])('redacts %s in linear time (AG-9, BD-2)', async (_, value) => {
    const began = performance.now();
    const { returned } = await act({
      settings: functions({ name: 'redaction', options: {} }),
      outcomes: [executed(value)],
      run: (ctx) => ctx.tool('search', '{}'),
    });
    expect(performance.now() - began).toBeLessThan(2_000);
    const { observation } = returned as Extract<ProposalOutcome, { kind: 'executed' }>;
    expect(Object.keys(observation)).toHaveLength(Object.keys(value).length);
  });

  it('numbers property names that become equal when they are redacted (AG-9)', async () => {
    const names = ['a@b.c', '[redacted] 2', 'd@e.f', 'g@h.i', '[redacted] 3'];
    const { returned } = await act({
      settings: functions({ name: 'redaction', options: {} }),
      outcomes: [executed(Object.fromEntries(names.map((name) => [name, 1])))],
      run: (ctx) => ctx.tool('search', '{}'),
    });
    const shown = ['', ' 2', ' 3', ' 4', ' 3 2'].map((number) => `[redacted]${number}`);
    const { observation } = returned as Extract<ProposalOutcome, { kind: 'executed' }>;
    expect(Object.keys(observation)).toEqual(shown);
  });

  it('redacts tool errors (AG-9)', async () => {
    const { returned } = await act({
      settings: functions({ name: 'redaction', options: { kinds: ['email'] } }),
      outcomes: [toolFailed],
      run: (ctx) => ctx.tool('search', '{}'),
    });
    expect(returned).toMatchObject({
      stop: { stopReason: 'tool_error:search', detail: 'No account of [redacted].' },
      result: { message: 'No account of [redacted].' },
    });
  });

  it('returns validation errors to the model, and fails when they persist (AG-9)', async () => {
    const schema = { type: 'object', required: ['title'] };
    const settings = chat({ name: 'output_validation', options: { schema } });
    const run = (ctx: AgentContext) => ctx.llm(ask('q'));
    const corrected = await act({
      settings,
      answers: [answerOf('{}'), answerOf('{"title":""}')],
      run,
    });
    expect(corrected.returned).toMatchObject({ text: '{"title":""}' });
    expect(corrected.asked.requests[1]?.messages.at(-1)).toMatchObject({
      text: expect.stringContaining("answer must have required property 'title'"),
      hidden: 'output_validation',
    });
    await expect(
      act({ settings, answers: [answerOf('{}'), answerOf('no')], run }),
    ).rejects.toMatchObject({ stop: { stopReason: 'error:invalid_output' } });
  });

  it('logs calls without content (AG-9)', async () => {
    const on = [{ name: 'logging', options: {} }];
    const { asked } = await act({
      settings: { agentMiddleware: on, chatMiddleware: on, functionMiddleware: on },
      answers: [answerOf('a')],
      outcomes: [executed({})],
      run: async (ctx) => {
        await ctx.llm(ask('q'));
        await ctx.tool('search', '{}');
      },
    });
    expect(asked.logged).toEqual(['agent begins', 'model call', 'tool call', 'agent returned']);
  });
});
