import { fromBinary } from '@bufbuild/protobuf';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { isEventMac } from '@writ/identity';
import { afterEach, describe, expect, it } from 'vitest';
import { AGENT, MeterWorld, type MeterWorldOptions, RUN, TENANT } from './meter-fixture.ts';
import { type Generated, textOf } from './model-calls.ts';

let world: MeterWorld;
const start = async (options?: MeterWorldOptions): Promise<MeterWorld> => {
  world = await MeterWorld.start(options);
  return world;
};
afterEach(() => world[Symbol.asyncDispose]());

describe('Generate', () => {
  it('answers, meters the usage of the provider and takes two commits (EM-3, EM-7, EM-8)', async () => {
    const { meter } = await start({
      scripts: { hello: [{ text: 'Hello.', usage: { prompt_tokens: 20, completion_tokens: 5 } }] },
    });
    await world.openTab();
    const before = meter.commits;
    const generated = await world.generate();
    expect(generated.error).toBeUndefined();
    expect(textOf(generated)).toBe('Hello.');
    expect(generated.chunks.map(({ chunk }) => chunk.case)).toEqual(['attemptStarted', 'finished']);
    expect(generated.finished).toMatchObject({
      endReason: EndReason.END_TURN,
      usage: { inputTokens: 20n, outputTokens: 5n },
      costNanoUsd: 25_000n,
      runCostNanoUsd: 25_000n,
      estimated: false,
      attempts: 1,
      replayed: false,
      fittedMaxOutputTokens: 100n,
      warnings: [],
    });
    expect(meter.commits - before).toBe(2);
    expect(await world.level(BudgetLevel.RUN)).toMatchObject({
      usedTokens: 25n,
      reservedTokens: 0n,
      usedTurns: 1n,
      reservedTurns: 0n,
    });
  });

  it('answers a repeat with the recorded answer, without a provider call or a commit (EM-7)', async () => {
    const { meter } = await start();
    await world.openTab();
    await world.generate();
    const before = meter.commits;
    const repeat = await world.generate();
    expect(textOf(repeat)).toBe('Hello.');
    expect(repeat.finished?.replayed).toBe(true);
    expect(repeat.chunks).toHaveLength(1);
    expect(world.simulator.requests()).toHaveLength(1);
    expect(meter.commits - before).toBe(0);
    const other = await world.generate({ temperature: 1 });
    expect(other.error).toMatchObject({ reason: 'CALL_ID_REUSED', kind: 'invalid_argument' });
  });

  it('records in LLM_START and BUDGET_EXHAUSTED the events that precede the call, even if a repeat omits them (HK-1, EM-7)', async () => {
    await start();
    await world.openTab({ budget: { maxTurns: 1n } });
    await world.generate({ callId: 'call-1', after: ['evt_1', 'evt_2'] });
    const repeat = await world.generate({ callId: 'call-1' });
    expect(repeat.finished?.replayed).toBe(true);
    await world.generate({ callId: 'call-2', after: ['evt_3'] });
    await expect
      .poll(() => world.events.map(({ name, event }) => [name, event.after]))
      .toEqual([
        ['LLM_START', ['evt_1', 'evt_2']],
        ['BUDGET_THRESHOLD', []],
        ['LLM_END', []],
        ['BUDGET_EXHAUSTED', ['evt_3']],
      ]);
  });

  it('returns the events of a new, repeated or failed call, authenticated with the key of the tab (HK-1)', async () => {
    await start({
      scripts: { hello: [{ text: 'Hello.' }, { error: { status: 400, message: 'no' } }] },
    });
    const eventKey = new Uint8Array(32).fill(7);
    await world.openTab({ eventKey });
    const namesOf = ({ finished }: Generated) =>
      finished?.events.map(({ event, mac }) => {
        expect(isEventMac(eventKey, event, mac)).toBe(true);
        expect(isEventMac(new Uint8Array(32), event, mac)).toBe(false);
        const { type, callId, status } = fromBinary(HookEventSchema, event);
        return [callId, type, status];
      });
    const answered = [
      ['call-1', HookEventType.LLM_START, 'ok'],
      ['call-1', HookEventType.LLM_END, 'ok'],
    ];
    expect(namesOf(await world.generate({ callId: 'call-1' }))).toEqual(answered);
    const failed = [
      ['call-2', HookEventType.LLM_START, 'ok'],
      ['call-2', HookEventType.LLM_END, 'provider_error:400'],
    ];
    expect(namesOf(await world.generate({ callId: 'call-2' }))).toEqual(failed);
    const repeat = await world.generate({ callId: 'call-1' });
    expect(repeat.finished?.replayed).toBe(true);
    expect(namesOf(repeat)).toEqual(answered);
    const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
    const { events } = await world.tab.closeTab({ tab, requestId: 'close-1' });
    const closed = events.map((event) => {
      const { type, callId, status } = fromBinary(HookEventSchema, event);
      return [callId, type, status];
    });
    expect(closed).toEqual([...answered, ...failed]);
  });

  it('joins repeats to the attempt in flight (EM-7)', async () => {
    await start({ scripts: { hello: [{ text: 'Hello there.', delay_ms: 60 }] } });
    await world.openTab();
    const all = await Promise.all(
      Array.from({ length: 10 }, () => world.generate({ deltas: true })),
    );
    expect(all.map(textOf)).toEqual(Array(10).fill('Hello there.'));
    expect(world.simulator.requests()).toHaveLength(1);
    const other = await world.generate({ requireContent: true });
    expect(other.error).toMatchObject({ reason: 'CALL_ID_REUSED' });
  });

  it('streams deltas on request (EM-8)', async () => {
    await start({
      scripts: { hello: [{ text: 'One two three four.', chunk_size: 5 }] },
    });
    await world.openTab();
    const streamed = await world.generate({ deltas: true });
    const deltas = streamed.chunks.flatMap(({ chunk }) =>
      chunk.case === 'textDelta' ? [chunk.value.text] : [],
    );
    expect(deltas.length).toBeGreaterThan(2);
    expect(deltas.join('')).toBe('One two three four.');
    expect(world.simulator.requests()[0]?.stream).toBe(true);
  });

  it('works without streaming (EM-8)', async () => {
    await start({ settings: 'streaming: false' });
    await world.openTab();
    const generated = await world.generate({ deltas: true });
    expect(textOf(generated)).toBe('Hello.');
    expect(world.simulator.requests()[0]?.stream).toBe(false);
  });

  it('returns the tool calls of the model (EM-8)', async () => {
    await start({
      scripts: {
        hello: [{ tool_calls: [{ name: 'look_up', arguments: { user_id: 42 }, id: 'c1' }] }],
      },
    });
    await world.openTab();
    const { finished } = await world.generate({
      tools: [{ name: 'look_up', description: 'Looks up.', inputSchemaJson: '{"type":"object"}' }],
    });
    expect(finished?.endReason).toBe(EndReason.TOOL_USE);
    expect(finished?.message?.parts.map(({ kind }) => kind)).toMatchObject([
      {
        case: 'toolUse',
        value: { toolUseId: 'c1', tool: 'look_up', argumentsJson: '{"user_id":42}' },
      },
    ]);
  });

  it('reports each attempt in events and in spans of the trace of the run (HK-1, SYS-1)', async () => {
    await start();
    await world.openTab();
    await world.generate({ step: 3 });
    await expect.poll(() => world.events.map(({ name }) => name)).toEqual(['LLM_START', 'LLM_END']);
    const [started, ended] = world.events;
    expect(started?.subject).toBe(`writ.hooks.v1.${TENANT}.${RUN}.${AGENT}.LLM_START`);
    expect(ended?.event).toMatchObject({
      status: 'ok',
      step: 3,
      callId: 'op-1',
      attempt: 1,
      model: 'hello',
      agent: { name: 'support', instance: AGENT },
    });
    const span = world.spans.spans().find(({ name }) => name === 'chat sim:hello');
    expect(span?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.output_tokens': expect.any(Number),
    });
    expect(ended?.event.traceparent).toContain(span?.traceId);
    expect(span?.parentSpanId).toBeDefined();
  });

  it('deletes recorded answers at the end of the run according to its retention (SUP-4)', async () => {
    await start();
    await world.openTab();
    await world.generate();
    await world.tab.freeze({
      order: {
        orderId: 'end-1',
        scope: { kind: { case: 'run', value: { tenant: TENANT, runId: RUN } } },
        cause: 4,
        reason: 'The run ended.',
        retention: 1,
      },
    });
    const repeat = await world.generate();
    expect(repeat.error).toMatchObject({ reason: 'ANSWER_PURGED' });
    expect(world.simulator.requests()).toHaveLength(1);
  });

  it('lists the models that the agent is allowed to use, with prices (EM-6)', async () => {
    await start();
    await world.openTab();
    const { models } = await world.model.listModels({}, await world.credentials());
    expect(models).toMatchObject([
      {
        alias: 'hello',
        providerModel: 'sim:hello',
        inputPriceNanoUsdPerMillion: 1_000_000_000n,
      },
    ]);
  });

  it('requires a current slot grant, so that a pause applies to every worker (SB-4)', async () => {
    await start();
    await world.openTab();
    const { slotGrant: _, ...without } = await world.credentials();
    const none = await world.generate({}, without);
    expect(none.error).toMatchObject({ reason: 'SLOT_GRANT_REQUIRED' });
    const holder = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
    const slotGrant = await world.spawnBudget.slotGrant(holder, -1);
    const late = await world.generate({}, { ...without, slotGrant });
    expect(late.error).toMatchObject({ reason: 'SLOT_GRANT_EXPIRED' });
    expect(world.simulator.requests()).toEqual([]);
  });

  it('is rejected without an epoch or with an agent token for another audience (EM-6)', async () => {
    await start();
    await world.openTab();
    const { epoch: _, ...without } = await world.credentials();
    await expect(world.generate({}, without)).resolves.toMatchObject({
      error: { kind: 'invalid_argument' },
    });
    const { toolGatewayToken } = await world.supervisor.agentCredentials({
      tenant: TENANT,
      runId: RUN,
      agent: { name: 'support', instance: AGENT },
    });
    const other = await world.generate({}, { agentToken: toolGatewayToken, epoch: 1n });
    expect(other.error).toMatchObject({ reason: 'TOKEN_INVALID' });
  });
});
