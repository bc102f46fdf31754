import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { ChatRole, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AGENT, given, MeterWorld, type MeterWorldOptions, RUN, TENANT } from './meter-fixture.ts';
import { textOf } from './model-calls.ts';
import { PRICES } from './models-yaml.ts';

let world: MeterWorld;
let server: Server | undefined;
const start = async (options?: MeterWorldOptions): Promise<MeterWorld> => {
  world = await MeterWorld.start(options);
  await world.openTab();
  return world;
};
afterEach(async () => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
  await world[Symbol.asyncDispose]();
});

const failuresOf = async () => {
  const { tab } = await world.tab.getTab({
    tab: { tenant: TENANT, runId: RUN, agentInstance: AGENT },
  });
  return given(tab).failures.map(({ stopReason, count, lastCallId }) => [
    stopReason,
    count,
    lastCallId,
  ]);
};

describe('a failing provider', () => {
  it.each([408, 409, 429, 500, 503])(
    'is retried after HTTP status %i, and each attempt is booked (EM-8)',
    async (status) => {
      const error = { status, message: 'no' };
      const { meter } = await start({
        scripts: { hello: [{ error }, { error }, { text: 'Yes.' }] },
      });
      const before = meter.commits;
      const generated = await world.generate();
      expect(textOf(generated)).toBe('Yes.');
      expect(generated.finished?.attempts).toBe(3);
      expect(world.simulator.requests()).toHaveLength(3);
      expect(meter.commits - before).toBe(4);
      await expect
        .poll(() =>
          world.events.map(({ name, event }) => `${name} ${event.attempt} ${event.status}`),
        )
        .toEqual([
          'LLM_START 1 ok',
          `LLM_END 1 provider_error:${status}`,
          'LLM_START 2 ok',
          `LLM_END 2 provider_error:${status}`,
          'LLM_START 3 ok',
          'LLM_END 3 ok',
        ]);
    },
  );

  it.each([400, 401, 404])('is not retried after HTTP status %i (EM-8)', async (status) => {
    const { meter } = await start({ scripts: { hello: [{ error: { status, message: 'no' } }] } });
    const before = meter.commits;
    const { finished, error } = await world.generate();
    expect(finished?.failure?.stopReason).toBe(`provider_error:${status}`);
    expect(error).toMatchObject({
      kind: 'failed_precondition',
      reason: 'PROVIDER_ERROR',
      metadata: { stop_reason: `provider_error:${status}` },
    });
    expect(meter.commits - before).toBe(2);
    expect(world.simulator.requests()).toHaveLength(1);
    expect(await failuresOf()).toEqual([[`provider_error:${status}`, 1n, 'op-1']]);
  });

  it('returns the recorded failure for a repeated call without another request (EM-7)', async () => {
    await start({ scripts: { hello: [{ error: { status: 400, message: 'no' } }] } });
    const first = await world.generate();
    const repeat = await world.generate();
    expect(repeat.finished).toMatchObject({ replayed: true, failure: first.finished?.failure });
    expect(repeat.error).toMatchObject({ reason: 'PROVIDER_ERROR' });
    expect(world.simulator.requests()).toHaveLength(1);
  });

  it('ends as llm_timeout with estimated usage when it exceeds the timeout (EM-8)', async () => {
    await start({
      scripts: { hello: [{ text: 'late', delay_ms: 60_000 }] },
      settings: 'max_retries: 1',
    });
    const { finished, error } = await world.generate({
      timeout: { seconds: 0n, nanos: 300_000_000 },
    });
    expect(finished).toMatchObject({ failure: { stopReason: 'llm_timeout' }, attempts: 2 });
    expect(finished?.estimated).toBe(true);
    expect(error).toMatchObject({ kind: 'deadline_exceeded', reason: 'LLM_TIMEOUT' });
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      reservedTokens: 0n,
      usedTurns: 2n,
    });
    await world.simulator.until(({ call, outcome }) => call === 2 && outcome === 'aborted');
  });

  it('is not retried when a cost cap is set during the call and its model has no price (EM-4, EM-9)', async () => {
    const answer = async (response: ServerResponse): Promise<void> => {
      await world.tab.setCaps({
        requestId: 'set-1',
        tenant: TENANT,
        level: BudgetLevel.TENANT_DAY,
        caps: { maxCostNanoUsd: 1_000_000n },
        setBy: 'anna',
      });
      response.writeHead(500).end();
    };
    server = createServer((_, response) => void answer(response));
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const models = [
      'models:',
      '  hello:',
      `    base_url: http://127.0.0.1:${port}/v1`,
      '    model: unpriced',
    ].join('\n');
    await start({ models });
    const { finished, error } = await world.generate();
    expect(finished).toMatchObject({
      failure: { stopReason: 'cancelled', reason: 'PRICE_MISSING' },
      attempts: 1,
    });
    expect(error).toMatchObject({ reason: 'PRICE_MISSING' });
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      reservedTokens: 0n,
      reservedTurns: 0n,
    });
  });

  it('ends as llm_timeout without cost when the connection is refused (EM-8)', async () => {
    server = createServer();
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    // No other program can listen on the port of a connected client.
    const client = connect(port, '127.0.0.1');
    await once(client, 'connect');
    onTestFinished(() => void client.destroy());
    const models = [
      'models:',
      '  hello:',
      `    base_url: http://127.0.0.1:${client.localPort}/v1`,
      '    model: unreachable',
      `    ${PRICES}`,
    ].join('\n');
    await start({ models });
    const { finished } = await world.generate();
    expect(finished).toMatchObject({
      failure: { stopReason: 'llm_timeout', reason: 'LLM_TIMEOUT' },
      attempts: 3,
      costNanoUsd: 0n,
    });
  });

  it('ends as llm_empty when the answer is empty and content was required (EM-8)', async () => {
    await start({ scripts: { hello: [{ text: '' }] } });
    const { finished, error } = await world.generate({ requireContent: true });
    expect(finished?.failure?.stopReason).toBe('llm_empty');
    expect(error).toMatchObject({ reason: 'LLM_EMPTY', metadata: { stop_reason: 'llm_empty' } });
    expect(finished?.usage?.inputTokens).toBeGreaterThan(0n);
    expect(await failuresOf()).toEqual([['llm_empty', 1n, 'op-1']]);
    const allowed = await world.generate({ callId: 'op-2' });
    expect(allowed.error).toBeUndefined();
    expect(allowed.finished?.message?.parts).toEqual([]);
  });

  it('that sends invalid JSON fails the call with provider_error, and the attempt is booked (EM-8)', async () => {
    await start({ scripts: { hello: [{ text: 'Hel', garbage: 'data: {"choices": [\n\n' }] } });
    const { finished } = await world.generate();
    expect(finished?.failure?.stopReason).toBe('provider_error:bad_response');
    expect(finished?.estimated).toBe(true);
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      reservedTokens: 0n,
      usedTurns: 1n,
    });
  });

  it.each([true, false])(
    'that returns a web page fails the call with provider_error (EM-8)',
    async (streaming) => {
      server = createServer((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>');
      });
      await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      const models = [
        'models:',
        '  hello:',
        `    base_url: http://127.0.0.1:${port}/v1`,
        '    model: page',
        `    streaming: ${streaming}`,
        `    ${PRICES}`,
      ].join('\n');
      await start({ models });
      const { finished } = await world.generate();
      expect(finished?.failure?.stopReason).toBe('provider_error:bad_response');
    },
  );

  it('is retried when its connection closes during the answer (EM-8)', async () => {
    await start({
      scripts: {
        hello: [{ text: 'One two three.', chunk_size: 4, cut_after_chunks: 2 }, { text: 'Whole.' }],
      },
    });
    const generated = await world.generate({ deltas: true });
    expect(textOf(generated)).toBe('Whole.');
    expect(generated.finished).toMatchObject({ attempts: 2, estimated: true });
  });
});

describe('an irregular answer', () => {
  it('that ends without a finish reason keeps the received text and ends as END_TURN with a warning (EM-9)', async () => {
    await start({
      scripts: { hello: [{ text: 'All of it.', omit: ['finish_reason', 'usage', 'done'] }] },
    });
    const generated = await world.generate();
    expect(textOf(generated)).toBe('All of it.');
    expect(generated.finished).toMatchObject({
      endReason: EndReason.END_TURN,
      estimated: true,
      warnings: [
        'The answer ended without a finish reason.',
        'The provider reported no usage; usage is estimated.',
      ],
    });
    expect(generated.finished?.usage?.inputTokens).toBeGreaterThan(3n);
    expect(generated.finished?.usage?.outputTokens).toBe(4n);
  });

  it('that ends without a finish reason after a tool use ends as TOOL_USE (EM-9)', async () => {
    await start({
      scripts: { hello: [{ tool_calls: [{ name: 'look_up' }], omit: ['finish_reason', 'done'] }] },
    });
    const { finished } = await world.generate({
      tools: [{ name: 'look_up', description: '', inputSchemaJson: '' }],
    });
    expect(finished?.endReason).toBe(EndReason.TOOL_USE);
  });

  it('that settles above its reservation is booked as debt, and the next call is refused (EM-3)', async () => {
    // The upper bound of this prompt exceeds the budget, so its tokens are counted for the reservation; the tokenizer
    // of the provider counts more.
    const prompt = 'word '.repeat(400);
    await start({
      scripts: { hello: [{ text: 'Hi.', usage: { prompt_tokens: 1700, completion_tokens: 100 } }] },
    });
    await world.openTab({
      agent: { name: 'support', instance: 'capped' },
      budget: { maxTokens: 1000n },
    });
    const options = await world.credentials('capped');
    const parts = [{ kind: { case: 'text' as const, value: prompt } }];
    await world.generate({ messages: [{ role: ChatRole.USER, parts }] }, options);
    expect(await world.level(BudgetLevel.AGENT, 'capped')).toMatchObject({
      usedTokens: 1800n,
      reservedTokens: 0n,
      nearBudget: true,
    });
    const { debtTokens } = await world.level(BudgetLevel.AGENT, 'capped');
    expect(debtTokens).toBeGreaterThan(0n);
    const next = await world.generate({ callId: 'op-2' }, options);
    expect(next.error).toMatchObject({ reason: 'BUDGET_EXHAUSTED' });
    await vi.waitFor(() =>
      expect(world.events.map(({ name }) => name)).toContain('BUDGET_EXHAUSTED'),
    );
  });
});
