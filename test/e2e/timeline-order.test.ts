import { fromBinary } from '@bufbuild/protobuf';
import type { Bus, BusMessage } from '@writ/bus';
import type { WritClient } from '@writ/client';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunEvent, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import type { ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createSignalAnswers, followRun, readHuman } from '@writ/platform/terminal';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startScriptedPlatform } from './scripted/scripted-platform.ts';

/** Services whose messages {@link LateBus} delays or blocks. */
const DELAYED_SERVICES: readonly ServiceName[] = [
  'agent-worker',
  'execution-meter',
  'tool-gateway',
];

/** How a message is delivered: `times` times, once `after` further messages have been published. */
interface Delivery {
  readonly after: number;
  readonly times: number;
}

/** Delays, repeats and reorders the messages of {@link DELAYED_SERVICES}, or blocks their publishing. */
class LateBus {
  /** The deliveries of the messages, used in rotation; when empty, messages are delivered at once. */
  deliveries: readonly Delivery[] = [];
  /** Services that cannot publish at all. */
  cutOff: readonly ServiceName[] = [];
  /** Number of STEP_START events that were published. */
  stepsStarted = 0;
  readonly #waiting: { due: number; readonly deliver: () => Promise<void> }[] = [];
  readonly #released = Promise.withResolvers<void>();
  #published = 0;

  of(service: ServiceName, bus: Bus): Bus {
    if (!DELAYED_SERVICES.includes(service)) return bus;
    const publish = async (message: BusMessage) => {
      // Blocks like a bus that does not acknowledge the message.
      if (this.cutOff.includes(service)) await this.#released.promise;
      const { deliveries } = this;
      const { after, times } = deliveries[this.#published % deliveries.length] ?? {
        after: 0,
        times: 1,
      };
      this.#published += 1;
      const deliver = async () => {
        for (let time = 0; time < times; time += 1) await bus.publish(message);
      };
      this.#waiting.push({ due: this.#published + after, deliver });
      // Delivers all messages when a step waits for a signal, because services may publish nothing more until the
      // signal arrives.
      const { type, waitingFor } = fromBinary(HookEventSchema, message.payload);
      if (type === HookEventType.STEP_START) this.stepsStarted += 1;
      const isWaiting = waitingFor !== '';
      await this.#deliverDue(isWaiting ? Number.POSITIVE_INFINITY : this.#published);
    };
    return {
      publish,
      publishAll: async (messages) => {
        for (const message of messages) await publish(message);
      },
      subscribe: (options) => bus.subscribe(options),
      hasSubscribers: () => bus.hasSubscribers(),
      publishLive: (message) => bus.publishLive(message),
      subscribeLive: (options) => bus.subscribeLive(options),
      close: () => bus.close(),
    };
  }

  /** Delivers all delayed messages. */
  async deliverAll(): Promise<void> {
    await this.#deliverDue(Number.POSITIVE_INFINITY);
  }

  release(): void {
    this.cutOff = [];
    this.#released.resolve();
  }

  async #deliverDue(now: number): Promise<void> {
    const due = this.#waiting.filter((message) => message.due <= now);
    for (const message of due) this.#waiting.splice(this.#waiting.indexOf(message), 1);
    // In reverse order.
    for (const { deliver } of due.reverse()) await deliver();
  }
}

/** Letters of the hook event types in {@link CAUSAL}; other types have no letter. */
const LETTERS: Readonly<Partial<Record<HookEventType, string>>> = {
  [HookEventType.RUN_START]: 'R',
  [HookEventType.STEP_START]: 'S',
  [HookEventType.LLM_START]: 'L',
  [HookEventType.LLM_END]: 'M',
  [HookEventType.GUARDRAIL_TRIP]: 'G',
  [HookEventType.TOOL_START]: 'T',
  [HookEventType.TOOL_END]: 'U',
  [HookEventType.STEP_END]: 'E',
  [HookEventType.HANDOFF]: 'H',
  [HookEventType.APPROVAL_REQUESTED]: 'A',
  [HookEventType.APPROVAL_DECIDED]: 'D',
  [HookEventType.RUN_END]: 'Z',
};

/**
 * The letters of an agent's run. In each step, a model call precedes the guardrails that its answer trips, both precede
 * the decisions, and a decision precedes its approval and execution.
 */
const CAUSAL = /^R(S(LMG*)*(V(V|ADV|TU|H)*)?E)*Z$/;

/** The entries of each agent, as letters. */
function byAgent(events: readonly RunEvent[]): Map<string, string> {
  const agents = new Map<string, string>();
  for (const { agent, entry } of events) {
    const letter =
      entry.case === 'decision'
        ? 'V'
        : entry.case === 'hook'
          ? (LETTERS[entry.value.type] ?? '')
          : '';
    const name = agent?.instance ?? '';
    agents.set(name, (agents.get(name) ?? '') + letter);
  }
  return agents;
}

function hooks(events: readonly RunEvent[]): HookEvent[] {
  return events.flatMap(({ entry }) => (entry.case === 'hook' ? [entry.value] : []));
}

/** Asserts the properties that the timeline of every ended run must have. */
function expectCausal(events: readonly RunEvent[], modelCalls: number): void {
  for (const letters of byAgent(events).values()) expect(letters).toMatch(CAUSAL);
  const seen = hooks(events);
  const ids = seen.map(({ eventId }) => eventId);
  expect(new Set(ids).size).toBe(ids.length);
  const ends = seen.filter(({ type }) => type === HookEventType.LLM_END);
  expect(ends).toHaveLength(modelCalls);
  expect(seen.every(({ sessionId }) => sessionId !== '')).toBe(true);
  const [end, result] = events.slice(-2);
  expect(end?.entry.value).toMatchObject({ type: HookEventType.RUN_END });
  expect(result?.entry.case).toBe('result');
  expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, at) => at + 1));
}

/** The events and model calls of an ended run. */
interface WatchedRun {
  readonly events: readonly RunEvent[];
  /** Number of model calls. */
  readonly calls: number;
}

/** Asserts that timelines are in causal order for random deliveries, and that later deliveries change nothing. */
async function expectCausalOverDeliveries(
  bus: LateBus,
  { runs }: WritClient,
  run: () => Promise<WatchedRun>,
): Promise<void> {
  const delivery = fc.record({ after: fc.nat(12), times: fc.integer({ min: 1, max: 2 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(delivery, { minLength: 1, maxLength: 24 }), async (deliveries) => {
      bus.deliveries = deliveries;
      const { events, calls } = await run();
      expectCausal(events, calls);
      await bus.deliverAll();
      const runId = hooks(events)[0]?.runId ?? '';
      const later = await Array.fromAsync(runs.watchRun({ runId }));
      expect(later.map(({ event }) => event)).toEqual(events);
    }),
    { numRuns: 8, endOnFailure: true },
  );
  bus.deliveries = [];
}

describe.each([
  ['refund-desk', 'sim-escalate-1200'],
  ['research-team', 'sim-tidal-mills'],
])('the timeline of %s', (name, model) => {
  const example = loadExample(name);
  const bus = new LateBus();
  let test: TestPlatform;
  beforeAll(async () => {
    test = await startTestPlatform({ example: name, busOf: (service, of) => bus.of(service, of) });
  });
  afterAll(async () => {
    bus.release();
    await test.close();
  });

  async function run(): Promise<WatchedRun> {
    const before = test.modelRequests().length;
    const { run: started } = await test.client.runs.startRun({
      requestId: newId('req'),
      agent: example.agent,
      goal: example.goal,
      model,
    });
    const runId = started?.runId ?? '';
    const events: RunEvent[] = [];
    const watch = (async () => {
      for await (const { event } of test.client.runs.watchRun({ runId })) {
        if (event) events.push(event);
      }
    })();
    const human = readHuman('approve', () => {
      throw new Error('The test does not expect a question.');
    });
    const following = followRun(test.client, runId, human, {
      onEvent: () => undefined,
      onQuestion: () => undefined,
      onRefusedAnswer: () => undefined,
      answer: createSignalAnswers(test.client, example.signals),
    });
    const [ended] = await Promise.all([following, watch]);
    expect(ended.result?.status).toBe(RunStatus.OK);
    return { events, calls: test.modelRequests().length - before };
  }

  it('is in causal order for each agent despite delayed, repeated and reordered deliveries (HK-1)', async () => {
    await expectCausalOverDeliveries(bus, test.client, run);
  }, 60_000);
});

/** An agent that continues a truncated answer within the same step, up to max_tokens_recoveries times. */
const STORYTELLER = `
agents:
  - name: storyteller
    kind: react
    instructions: You tell.
    model: { model: research, max_output_tokens: 1 }
    guardrails: { max_tokens_recoveries: 3 }
`;

describe('the timeline of an agent that calls its model several times in one step', () => {
  it('is in causal order for each call and guardrail despite delayed, repeated and reordered deliveries (HK-1, AG-6)', async () => {
    const bus = new LateBus();
    let asked = 0;
    const platform = await startScriptedPlatform({
      agents: STORYTELLER,
      beforeAnswer: async () => {
        asked += 1;
        if (asked % 4 !== 0) return;
        // The worker sends the events of the step with its review request, which follows this answer. Delivers them
        // from the bus first.
        await vi.waitFor(() => expect(bus.stepsStarted).toBe(asked / 4), 30_000);
        await bus.deliverAll();
      },
      entries: [{ when: { system_contains: 'You tell' }, reply: { text: 'On and on.' } }],
      busOf: (service, of) => bus.of(service, of),
    });
    const { client } = platform.test;
    try {
      await expectCausalOverDeliveries(bus, client, async () => {
        const before = platform.requests().length;
        const start = { requestId: newId('req'), agent: 'storyteller', goal: 'Tell.' };
        const answers = await Array.fromAsync(client.runs.runAgent({ start }));
        const events = answers.flatMap(({ event }) => event ?? []);
        const calls = platform.requests().length - before;
        expect(calls).toBe(4);
        expect([...byAgent(events).values()]).toEqual(['RSLMGLMGLMGLMVEZ']);
        return { events, calls };
      });
    } finally {
      bus.release();
      await platform.close();
    }
  }, 60_000);
});

describe('the timeline of a run whose services cannot publish', () => {
  const example = loadExample('refund-desk');
  const cases = [DELAYED_SERVICES, ...DELAYED_SERVICES.map((service) => [service])];
  it.each(cases.map((services) => [services] as const))(
    'contains all events, and the result last, when the bus accepts no events of %s (HK-1)',
    async (cutOff) => {
      const bus = new LateBus();
      bus.cutOff = cutOff;
      const test = await startTestPlatform({ busOf: (service, of) => bus.of(service, of) });
      try {
        for (const model of ['sim-auto-1000', 'sim-llm-empty', 'sim-unknown-tool']) {
          const before = test.modelRequests().length;
          const start = {
            requestId: newId('req'),
            agent: example.agent,
            goal: example.goal,
            model,
          };
          const answers = await Array.fromAsync(test.client.runs.runAgent({ start }));
          const events = answers.flatMap(({ event }) => event ?? []);
          expectCausal(events, test.modelRequests().length - before);
          expect(hooks(events).some(({ type }) => type === HookEventType.STEP_END)).toBe(true);
        }
      } finally {
        bus.release();
        await test.close();
      }
    },
  );
});
