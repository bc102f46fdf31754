import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { AgentKind, RefusalHandling } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import type { JsonObject } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { AgentContext } from '../src/runtime/agent.ts';
import { AGENT, type ManifestFields, RUN } from './delivery.ts';
import { type FakeAnswer, type FakeModel, modelTimeout } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const { REACT, ORCHESTRATOR, JSON_ACTION } = AgentKind;
const READ = { user_id: 42 };

/** Settings of one middleware. */
function use(name: string, options: JsonObject = {}) {
  return [{ name, optionsJson: JSON.stringify(options) }];
}

/** Returns a model that requests `calls` one after the other, in the format of the agent kind, and then answers. */
function callerOf(kind: AgentKind, calls: readonly JsonObject[], answer = 'Done.'): FakeModel {
  let turn = 0;
  return (): FakeAnswer => {
    const args = calls[turn];
    turn += 1;
    const tool = 'get_refund_context';
    if (kind !== JSON_ACTION) return args === undefined ? answer : { toolUses: [{ tool, args }] };
    return JSON.stringify(
      args === undefined ? { kind: 'final', answer } : { kind: 'tool', name: tool, args },
    );
  };
}

async function start(model: FakeModel, manifest: Partial<ManifestFields>) {
  const world = await World.start({ model });
  world.supervisor.rule = approveAll;
  const worker = await world.startWorker();
  await world.deliver({ manifest });
  return { world, worker };
}

function trips(world: World): string[] {
  return world.events.flatMap(({ type, dimension }) =>
    type === HookEventType.GUARDRAIL_TRIP ? [dimension] : [],
  );
}

describe.each([
  ['react', REACT],
  ['orchestrator', ORCHESTRATOR],
  ['json-action', JSON_ACTION],
])('function middleware of a %s agent', (_, kind) => {
  it('redacts results and errors of tools before the model sees them (AG-9)', async () => {
    const model = callerOf(kind, [READ, { user_id: 43 }]);
    const { world } = await start(model, {
      kind,
      functionMiddleware: use('redaction'),
      onRefusal: RefusalHandling.TELL_MODEL,
    });
    world.gateway.answer = (_tool, { user_id: id }) =>
      id === 42
        ? {
            status: CallStatus.OK,
            result: { kind: ResultKind.JSON, content: '{"owner":"a@example.org","id":42}' },
            receipt: 'receipt',
          }
        : {
            status: CallStatus.ERROR,
            stopReason: 'tool_error:get_refund_context',
            message: 'No account of b@example.org.',
            receipt: 'receipt',
          };
    await world.until('COMPLETED');
    expect(world.meter.requests).toHaveLength(3);
    const shown = JSON.stringify(world.meter.requests.map(({ messages }) => messages));
    expect(shown).toContain('[redacted]');
    expect(shown).not.toContain('example.org');
  });

  it('returns the cached result of a repeated call without another review (AG-9)', async () => {
    const model = callerOf(kind, [READ, READ]);
    const { world } = await start(model, {
      kind,
      functionMiddleware: use('cache', { tools: ['get_refund_context'] }),
    });
    await world.until('COMPLETED');
    expect(world.gateway.executed).toHaveLength(1);
    expect(world.supervisor.decided).toHaveLength(2);
    expect(world.meter.requests).toHaveLength(3);
  });

  it('retries a failed call under a new call_id (AG-9)', async () => {
    const model = callerOf(kind, [READ]);
    const options = { tools: ['get_refund_context'], base_ms: 1 };
    const { world } = await start(model, { kind, functionMiddleware: use('retry', options) });
    let failures = 0;
    world.gateway.answer = () => {
      failures += 1;
      if (failures > 1) return undefined;
      const stopReason = 'tool_error:get_refund_context';
      return { status: CallStatus.ERROR, stopReason, message: 'Down.', receipt: 'receipt' };
    };
    await world.until('COMPLETED');
    expect(world.gateway.executed).toHaveLength(2);
    expect(new Set(world.gateway.requests.map(({ call }) => call?.callId)).size).toBe(2);
    expect(world.meter.requests).toHaveLength(2);
  });

  it('journals one log line per run, model call and tool call (AG-9)', async () => {
    const on = use('logging');
    const model = callerOf(kind, [READ]);
    const { world, worker } = await start(model, {
      kind,
      agentMiddleware: on,
      chatMiddleware: on,
      functionMiddleware: on,
    });
    await world.until('COMPLETED');
    const rows = await worker.store.db
      .selectFrom('journal')
      .select('value')
      .where('kind', '=', 'log')
      .execute();
    const lines = rows.map(({ value }) => JSON.parse(value ?? '{}').message);
    expect(lines.toSorted()).toEqual([
      'agent begins',
      'agent returned',
      'model call',
      'model call',
      'tool call',
    ]);
  });
});

describe('chat middleware', () => {
  it('redacts what the provider receives, and the answer (AG-9)', async () => {
    const { world } = await start(() => 'Wrote to c@example.org.', {
      kind: REACT,
      instructions: 'Ask a@example.org.',
      chatMiddleware: use('redaction', { kinds: ['email'] }),
    });
    await world.until('COMPLETED');
    expect(JSON.stringify(world.meter.requests[0]?.messages)).toContain('Ask [redacted]');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('Wrote to [redacted].');
  });

  it('answers an identical model call from the cache (AG-9)', async () => {
    let calls = 0;
    const model = () => {
      calls += 1;
      return `answer ${calls}`;
    };
    const world = await World.start({ model });
    world.supervisor.rule = approveAll;
    const custom = (_: unknown, id: string) => ({
      id,
      kind: 'custom',
      run: async (ctx: AgentContext) => {
        const request = { model: 'small', messages: [], json: false, requireContent: false };
        const ask = { ...request, messages: [{ role: 'user', text: 'Hello.' }] as const };
        const answers = [await ctx.llm(ask), await ctx.llm(ask)];
        await ctx.reply(answers.map((one) => (one.kind === 'answer' ? one.text : '')).join(', '));
      },
    });
    await world.startWorker({}, { agents: { custom } });
    await world.deliver({ manifest: { kind: AgentKind.CUSTOM, chatMiddleware: use('cache') } });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('answer 1, answer 1');
    expect(world.meter.paid).toHaveLength(1);
  });

  it('calls the model again after a timeout (AG-9)', async () => {
    let calls = 0;
    const model: FakeModel = () => {
      calls += 1;
      if (calls === 1) throw modelTimeout();
      return 'Done.';
    };
    const chatMiddleware = use('retry', { base_ms: 1 });
    const { world } = await start(model, { kind: REACT, chatMiddleware });
    await world.until('COMPLETED');
    expect(new Set(world.meter.requests.map(({ callId }) => callId)).size).toBe(2);
  });

  it('returns an invalid answer to the model once (AG-9)', async () => {
    const answers = ['plain', '{"title":"a"}'];
    const schema = { type: 'object', required: ['title'] };
    const chatMiddleware = use('output_validation', { schema });
    const { world } = await start(() => answers.shift() ?? '', { kind: REACT, chatMiddleware });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('{"title":"a"}');
    expect(JSON.stringify(world.meter.requests[1]?.messages)).toContain('it is not JSON');
  });

  it('validates the final answer of a json-action agent, not its tool calls (AG-9)', async () => {
    const schema = { type: 'object', required: ['title'] };
    const { world } = await start(callerOf(JSON_ACTION, [READ], '{"title":"a"}'), {
      kind: JSON_ACTION,
      chatMiddleware: use('output_validation', { schema }),
    });
    await world.until('COMPLETED');
    expect(world.meter.requests).toHaveLength(2);
  });
});

describe('middleware that stops an agent', () => {
  it('trips the guardrail and ends the agent with its reason (AG-6, AG-9)', async () => {
    const schema = { type: 'object', required: ['title'] };
    const { world } = await start(() => 'plain', {
      kind: REACT,
      chatMiddleware: use('output_validation', { schema, max_retries: 0 }),
    });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:invalid_output');
    expect(world.supervisor.reports[0]?.detail).toBe('it is not JSON.');
    await expect.poll(() => trips(world)).toEqual(['middleware']);
    expect(world.events.find(({ dimension }) => dimension === 'middleware')?.agent?.name).toBe(
      AGENT.name,
    );
  });
});
