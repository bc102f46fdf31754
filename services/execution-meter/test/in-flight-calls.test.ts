import { CancellationError, ManualClock, Priority } from '@writ/kernel';
import { createTelemetry, InMemorySpans, type Metrics, type Telemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { CallLedger } from '../src/app/calls/call-ledger.ts';
import type { CallRequest } from '../src/app/calls/call-request.ts';
import { ModelSlots } from '../src/app/calls/model-call-slots.ts';
import { ModelCalls } from '../src/app/calls/model-calls.ts';
import { closeTab } from '../src/app/tabs/open-tab.ts';
import type { MeterContext } from '../src/context.ts';
import type { CallPlan } from '../src/domain/calls/call-plan.ts';
import { Catalog, type ModelEntry } from '../src/domain/catalog/catalog.ts';
import { PriceList } from '../src/providers/catalog/price-list.ts';
import type { Provider } from '../src/providers/provider.ts';
import { findCall } from '../src/store/calls.ts';
import { requireTab } from '../src/store/require-spendable.ts';
import { openTabOf, openTabReplica, type TokenCaps } from './tab-replica.ts';

const OWNER = { tenant: 'acme', runId: 'run-1', instance: 'support-1', sessionId: 'session-1' };
const MODEL: ModelEntry = {
  alias: 'hello',
  baseUrl: 'http://127.0.0.1/v1',
  api: 'openai',
  keyVariable: undefined,
  providerModel: 'hello',
  contextWindow: undefined,
  maxOutputTokens: 100,
  timeoutMs: 60_000,
  maxRetries: 0,
  maxInFlight: undefined,
  maxQueued: 10,
  streaming: true,
  outputCapField: 'max_tokens',
  prices: {},
  pricedAs: 'hello',
};
const REQUEST: CallRequest = {
  ...OWNER,
  callId: 'op-1',
  requestDigest: 'digest',
  epoch: 1n,
  priority: Priority.NORMAL,
  tokenModels: ['hello'],
  model: 'hello',
  chat: { messages: [], tools: [], toolChoice: undefined, temperature: undefined, json: false },
  maxOutputTokens: undefined,
  fit: 'refuse',
  timeoutMs: undefined,
  step: 1,
  after: [],
  disconnectGraceMs: 60_000,
  requireContent: false,
  traceparent: '',
};
const { signal: NEVER } = new AbortController();

interface Options {
  readonly clock?: ManualClock;
  readonly deadline?: Date;
  readonly caps?: TokenCaps;
  readonly telemetry?: Telemetry;
}

interface Fixture {
  readonly calls: ModelCalls;
  readonly context: MeterContext;
  readonly ledger: CallLedger;
}

/** Returns the in-flight calls of a meter with an open tab; `provider` serves its models. */
async function callsOf(
  provider: Provider,
  { clock = new ManualClock(), deadline, caps = {}, ...more }: Options = {},
  prices = new PriceList(clock),
): Promise<Fixture> {
  const opened = await openTabReplica({ dialect: 'sqlite', file: ':memory:' });
  onTestFinished(() => opened.store.close());
  const catalog = new Catalog(new Map([[MODEL.alias, { entry: MODEL }]]));
  const context = { ...opened, clock, catalog, ...more };
  const models = [MODEL.alias];
  await openTabOf(context, { ...OWNER, models, ...(deadline && { deadline }) }, caps);
  const slots = new ModelSlots(context.store);
  onTestFinished(() => slots.close());
  const ledger = new CallLedger(context);
  return { calls: new ModelCalls({ context, ledger, prices, slots, provider }), context, ledger };
}

it('starts no attempt for a repeat that waits for an aborted call during a shutdown (EM-7)', async () => {
  const asked = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  let requests = 0;
  const { calls, context } = await callsOf(async () => {
    requests += 1;
    asked.resolve();
    await settled.promise;
    return { type: 'aborted', partial: [], sent: true };
  });
  const call = Array.fromAsync(calls.open(REQUEST, NEVER));
  await asked.promise;
  calls.abort(() => new CancellationError('the caller disconnected'));
  const repeat = Array.fromAsync(calls.open(REQUEST, NEVER));
  const results = Promise.allSettled([call, repeat]);
  // After this read, the repeat has read its tab, too.
  await requireTab(context.store.db, REQUEST);
  const closed = calls.close(0);
  settled.resolve();
  await closed;
  expect(await results).toMatchObject([
    { reason: { kind: 'cancelled' } },
    { reason: { reason: 'SHUTTING_DOWN' } },
  ]);
  expect(requests).toBe(1);
});

it('aborts a call at the deadline of the run even if the call waited before its first attempt (SUP-5, SUP-8)', async () => {
  const clock = new ManualClock();
  const deadline = new Date(clock.now().getTime() + 3_600_000);
  /** A price list whose lookup lasts until shortly before the deadline. */
  class SlowPrices extends PriceList {
    override async pricesOf(model: ModelEntry) {
      clock.advance(3_599_900);
      return await super.pricesOf(model);
    }
  }
  const untilAborted: Provider = async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return { type: 'aborted', partial: [], sent: true };
  };
  const { calls } = await callsOf(untilAborted, { clock, deadline }, new SlowPrices(clock));
  const call = Array.fromAsync(calls.open(REQUEST, NEVER));
  await expect(call).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
});

it('saves an orphaned attempt even if its repeat is refused, so that the tab can close (EM-3, AG-7)', async () => {
  const { context, ledger } = await callsOf(() => Promise.reject(new Error('Not sent.')), {
    caps: { tab: 150n },
  });
  const plan: CallPlan = {
    model: MODEL,
    prices: undefined,
    cacheWrites: 'none',
    promptTokens: 10n,
    counted: true,
    outputTokens: 90n,
  };
  const lookup = { isNew: false, dead: new Set<string>() };
  expect(await ledger.begin(REQUEST, plan, lookup)).toMatchObject({ type: 'opened' });
  expect(await ledger.begin(REQUEST, plan, lookup)).toMatchObject({ type: 'refused' });
  const call = await findCall(context.store.db, REQUEST, REQUEST.callId);
  expect(call).toMatchObject({
    state: 'interrupted',
    attempts: 1,
    usage: { input: 10n, output: 90n },
    estimated: true,
  });
  const { tab } = await closeTab(context, OWNER, { onlyIfSettled: true });
  expect(tab.state).toBe('closed');
});

it('records the same error.type in the span and the metric of an aborted call (SYS-1)', async () => {
  const spans = new InMemorySpans();
  const traced = createTelemetry({ service: 'test', logLevel: 'silent', spanProcessors: [spans] });
  onTestFinished(() => traced.shutdown());
  const recorded: unknown[] = [];
  const metrics: Metrics = {
    ...traced.metrics,
    enabled: true,
    record: (_, __, labels) => recorded.push(labels?.['error.type']),
  };
  const { calls }: Fixture = await callsOf(
    async () => {
      calls.abort(() => new CancellationError('the caller disconnected'));
      return { type: 'aborted', partial: [], sent: true };
    },
    { telemetry: { ...traced, metrics } },
  );
  await expect(Array.fromAsync(calls.open(REQUEST, NEVER))).rejects.toThrow();
  expect(recorded).toEqual(['cancelled']);
  const span = spans.spans().find(({ name }) => name === 'chat hello');
  expect(span?.attributes['error.type']).toBe('cancelled');
});
