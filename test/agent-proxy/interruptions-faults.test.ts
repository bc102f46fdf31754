import { setTimeout as pause } from 'node:timers/promises';
import { HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { newId } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { expect, it, vi } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  type ExternalRun,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from './external-run.ts';
import { answerText, chunk, event, type ModelRequest, scriptedModel } from './scripted-model.ts';

const HELLO = [{ role: 'user', content: 'Hello.' }] as const;
const HALTED: unknown = expect.stringMatching(/^Halted by developer: It must stop\.$/);

/** Starts a model that streams one word and then waits until the caller disconnects or `finish` is called. */
async function slowModel() {
  const finished = Promise.withResolvers<void>();
  const model = await scriptedModel(async (request, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.write(chunk({ content: 'One ' }));
    await Promise.race([finished.promise, untilClosed(request)]);
    response.end(`${chunk({ content: 'two.' })}${chunk({}, 'stop')}data: [DONE]\n\n`);
  });
  return { model, finish: () => finished.resolve() };
}

async function untilClosed({ closed }: ModelRequest): Promise<void> {
  if (closed.aborted) return;
  await new Promise<void>((resolve) => closed.addEventListener('abort', () => resolve()));
}

/** A request in each dialect, the first events of its answer, and the event with which a halt ends it. */
const STREAMED = {
  'chat completions': {
    path: '/chat/completions',
    body: { model: ALIAS, messages: HELLO },
    begin: [chunk({ content: 'One ' })],
    end: { error: { code: 'run_halted', type: 'permission_denied', message: HALTED } },
  },
  responses: {
    path: '/responses',
    body: { model: ALIAS, input: 'Hello.' },
    begin: [
      event({ type: 'response.created', response: { id: 'resp_1', object: 'response' } }),
      event({ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'One ' }),
    ],
    end: {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'run_halted', message: HALTED } },
    },
  },
  messages: {
    path: '/messages',
    body: { model: CLAUDE, max_tokens: 50, messages: HELLO },
    begin: [
      event({ type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 7 } } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'One ' } }),
    ],
    end: {
      type: 'error',
      error: { type: 'permission_error', code: 'run_halted', message: HALTED },
    },
  },
};

/** Runs that are halted one after the other; a slow machine may delay some of them. */
const HALTED_RUNS = 5;
/**
 * Maximum time from the halt request until the provider connection is closed, milliseconds; the test checks the fastest
 * halt.
 */
const MAX_CLOSE_MS = 1_000;

it.each(Object.entries(STREAMED))(
  'ends a stream of %s within a second when its run is halted: closes the provider connection, sends the client an error, refuses the next call and settles the usage (AP-1, AP-2, SV-9, EM-8)',
  async (_, { path, body, begin, end }) => {
    const model = await scriptedModel(async (request, response) => {
      response.setHeader('content-type', 'text/event-stream');
      for (const part of begin) response.write(part);
      await untilClosed(request);
    });
    const test = await proxyPlatform(model);
    const halts: HaltTimes[] = [];
    for (let count = 1; count <= HALTED_RUNS; count += 1) {
      const run = await startExternalRun(test);
      const ask = (more: object) => postJson(run, path, { ...body, ...more });
      const stream = await ask({ stream: true });
      const read = readText(stream);
      await vi.waitFor(() => expect(read.text).toContain('One '));
      halts.push(await haltRun(test, run.runId, model.requests.at(-1)));
      await read.ended;
      const last = read.text.split('\n').findLast((line) => line.startsWith('data: '));
      expect(JSON.parse(last?.slice('data: '.length) ?? '')).toMatchObject(end);
      const next = await ask({});
      expect(next.status).toBe(403);
      expect(await next.json()).toMatchObject({ error: { code: 'run_halted' } });
      expect(model.requests).toHaveLength(count);
      await expectSettled(test, run.runId);
    }
    const taken = halts
      .map(({ closeMs, answerMs }) => `${Math.round(closeMs)} of ${Math.round(answerMs)} ms`)
      .join(', ');
    expect(Math.min(...halts.map(({ closeMs }) => closeMs)), taken).toBeLessThan(MAX_CLOSE_MS);
    // The halt is pushed: the provider connection is closed before the halt is reported to be in force. With polling,
    // it would be closed later.
    const pushed = halts.filter(({ closeMs, answerMs }) => closeMs <= answerMs);
    expect(pushed.length, taken).toBeGreaterThan(HALTED_RUNS / 2);
  },
);

/** Times from the halt request to two events, milliseconds. */
interface HaltTimes {
  /** The connection of the provider is closed. */
  readonly closeMs: number;
  /** The halt is reported to be in force. */
  readonly answerMs: number;
}

/** Halts a run. */
async function haltRun(
  { client }: TestPlatform,
  runId: string,
  request: ModelRequest | undefined,
): Promise<HaltTimes> {
  if (request === undefined) throw new Error('The model has received no request.');
  expect(request.closed.aborted).toBe(false);
  const haltedAt = performance.now();
  const closed = untilClosed(request).then(() => performance.now() - haltedAt);
  const { halt } = await client.control.halt({
    requestId: newId('req'),
    scope: { kind: { case: 'run', value: { tenant: 'default', runId } } },
    reason: 'It must stop.',
  });
  const answerMs = performance.now() - haltedAt;
  expect(halt?.state).toBe(HaltState.IN_FORCE);
  return { closeMs: await closed, answerMs };
}

function postJson({ baseUrl, token }: ExternalRun, path: string, body: object): Promise<Response> {
  return fetch(`${baseUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** Reads a body: `text` is the part received, `ended` settles at the end of the body. */
function readText({ body }: Response) {
  const read = { text: '', ended: Promise.resolve() };
  const decoder = new TextDecoder();
  read.ended = (async () => {
    for await (const bytes of body ?? []) read.text += decoder.decode(bytes, { stream: true });
  })();
  return read;
}

/** Waits until the only model call of a run is settled, and checks that no budget level has a reservation. */
async function expectSettled({ client }: TestPlatform, runId: string): Promise<void> {
  const tab = await vi.waitFor(async () => {
    const settled = (await client.usage.getRunUsage({ runId })).tab;
    expect(settled?.totals).toMatchObject({ turns: 1n, estimatedTurns: 1n });
    return settled;
  });
  expect(tab?.totals?.usage?.inputTokens).toBeGreaterThan(0n);
  expect(tab?.levels).not.toEqual([]);
  for (const level of tab?.levels ?? []) {
    expect(level).toMatchObject({
      reservedTokens: 0n,
      reservedCostNanoUsd: 0n,
      reservedTurns: 0n,
    });
  }
}

it('answers a retry after a lost connection from the first model call, which is paid once (AP-2, EM-7)', async () => {
  const { model, finish } = await slowModel();
  const test = await proxyPlatform(model);
  const { runId, baseUrl, token, openai } = await startExternalRun(test);
  const body = JSON.stringify({ model: ALIAS, messages: HELLO, stream: true });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const leaving = new AbortController();
  const first = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers,
    body,
    signal: leaving.signal,
  });
  const callId = first.headers.get('x-writ-call-id');
  leaving.abort();
  await expect(first.text()).rejects.toThrow();
  finish();
  const again = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    // The SDKs of OpenAI and Anthropic mark their retries with this header.
    headers: { ...headers, 'x-stainless-retry-count': '1' },
    body,
  });
  expect(again.headers.get('x-writ-call-id')).toBe(callId);
  expect(await again.text()).toContain('[DONE]');
  expect(model.requests).toHaveLength(1);
  const other = await openai.chat.completions
    .create({ model: ALIAS, messages: [...HELLO], stream: true })
    .withResponse();
  expect(other.response.headers.get('x-writ-call-id')).not.toBe(callId);
  for await (const _ of other.data);
  expect(model.requests).toHaveLength(2);
  await test.client.runs.closeRun({ requestId: newId('req'), runId });
  await stopReasonOf(test, runId);
  const { run } = await test.client.runs.getRun({ runId });
  expect(run?.result?.usage?.turns).toBe(2n);
});

it('ends a run whose program makes no request for idle_timeout (AP-1)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { runId, openai } = await startExternalRun(test, { agent: 'restless-bot' });
  expect(await stopReasonOf(test, runId)).toBe('idle');
  await expect(
    openai.chat.completions.create({ model: ALIAS, messages: [...HELLO] }),
  ).rejects.toMatchObject({ status: 403, code: 'run_ended' });
});

it('ends open requests with an error when the run is cancelled (AP-1, SUP-8)', async () => {
  const { model } = await slowModel();
  const test = await proxyPlatform(model);
  const { runId, openai } = await startExternalRun(test);
  const stream = await openai.chat.completions.create({
    model: ALIAS,
    messages: [...HELLO],
    stream: true,
  });
  const reading = (async () => {
    for await (const _ of stream) await pause(0);
  })();
  const ended = expect(reading).rejects.toThrow(/ended/i);
  await test.client.runs.cancelRun({ requestId: newId('req'), runId, reason: 'Not needed.' });
  await ended;
  await vi.waitFor(() => expect(model.requests[0]?.closed.aborted).toBe(true));
  expect(await stopReasonOf(test, runId)).toBe('cancelled');
});

it('suspends the slot of an agent between its requests and reactivates it for the next request (AP-1, EM-1)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { runId, openai } = await startExternalRun(test);
  const stateOf = async () => {
    const { pool } = await test.client.usage.getPool({ runId });
    const { state, waitTime } = pool?.holders[0] ?? {};
    // Only a report sets waitTime; the expiry of a lease does not.
    return { state, isReported: waitTime !== undefined };
  };
  const ask = () => openai.chat.completions.create({ model: ALIAS, messages: [...HELLO] });
  await ask();
  expect(await stateOf()).toMatchObject({ state: SlotState.ACTIVE });
  const waiting = { state: SlotState.SUSPENDED, isReported: true };
  await vi.waitFor(async () => expect(await stateOf()).toEqual(waiting));
  await ask();
  expect(await stateOf()).toMatchObject({ state: SlotState.ACTIVE });
});

it('renews the slot of an agent during a long model call (SB-4, EM-1)', async () => {
  const { model, finish } = await slowModel();
  const test = await proxyPlatform(model);
  const { runId, openai } = await startExternalRun(test, { agent: 'restless-bot' });
  const stream = await openai.chat.completions.create({
    model: ALIAS,
    messages: [...HELLO],
    stream: true,
  });
  const leaseOf = async () => {
    const { pool } = await test.client.usage.getPool({ runId });
    return Number(pool?.holders[0]?.leaseExpireTime?.seconds ?? 0n);
  };
  const before = await leaseOf();
  await vi.waitFor(async () => expect(await leaseOf()).toBeGreaterThan(before), {
    timeout: 60_000,
  });
  finish();
  for await (const _ of stream);
  expect(await stopReasonOf(test, runId)).toBe('idle');
});
