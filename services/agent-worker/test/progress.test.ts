import { fromBinary } from '@bufbuild/protobuf';
import { type BusMessage, HOOK_SUBJECTS, progressAgent, progressOfRun } from '@writ/bus';
import { AgentActivity, LiveProgressSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { UnavailableError } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

const ESCALATE =
  '{"kind":"tool","name":"issue_refund","args":{"user_id":42,"amount_usd":1200,"reason":"x"}}';

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});
afterAll(() => scripts[Symbol.asyncDispose]());

function nameOf(activity: AgentActivity): string | undefined {
  return Object.entries(AgentActivity).find(([, value]) => value === activity)?.[0];
}

/** Subscribes to the live progress of the run; returns the received messages. */
function subscribe(world: World) {
  const messages: BusMessage[] = [];
  world.bus.subscribeLive({
    subject: progressOfRun({ tenant: TENANT, runId: RUN }),
    handler: (message) => void messages.push(message),
  });
  const shown = () => messages.map(({ payload }) => fromBinary(LiveProgressSchema, payload));
  return {
    messages,
    /** Returns the step and activity of each message without text, such as `1 RUNNING`. */
    activities: () =>
      shown()
        .filter(({ textDelta }) => textDelta === '')
        .map(({ step, activity }) => `${step} ${nameOf(activity)}`),
    /** Returns the messages that contain text. */
    pieces: () => shown().filter(({ textDelta }) => textDelta !== ''),
  };
}

describe('live progress of an agent', () => {
  it('publishes states and steps, but no model text unless the manifest permits it (SUP-1)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    const { activities, pieces, messages } = subscribe(world);
    await world.startWorker();
    await world.deliver();
    await world.until('COMPLETED');
    expect(activities()).toEqual([
      '0 RUNNING',
      ...[1, 2, 3].flatMap((step) => [
        `${step} RUNNING`,
        `${step} WAITING_FOR_TOOL`,
        `${step} RUNNING`,
      ]),
      '4 RUNNING',
      '4 ENDED',
    ]);
    expect(pieces()).toEqual([]);
    expect(world.meter.requests.some(({ deltas }) => deltas)).toBe(false);
    expect(new Set(messages.map(({ subject }) => progressAgent(subject)))).toEqual(
      new Set([AGENT.instance]),
    );
  });

  it('publishes model text, marked unreviewed, when the manifest permits it (SUP-1)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const { pieces, activities } = subscribe(world);
    await world.startWorker();
    await world.deliver({ manifest: { unreviewedDeltas: true } });
    await world.until('SUSPENDED');
    expect(
      pieces()
        .map(({ textDelta }) => textDelta)
        .join(''),
    ).toBe(ESCALATE);
    expect(pieces().length).toBeGreaterThan(1);
    for (const piece of pieces()) {
      expect(piece).toMatchObject({ unreviewed: true, callId: 'op-1', attempt: 1, step: 1 });
      const { textOffset: at, textDelta } = piece;
      expect(ESCALATE.slice(at, at + textDelta.length)).toBe(textDelta);
    }
    expect(activities()).toEqual(['0 RUNNING', '1 RUNNING', '1 SUSPENDED']);
  });

  it('does not publish text again when a call is retried or the journal is replayed (RT-1)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    world.faults.failAt('after generate op-1', new UnavailableError('UNAVAILABLE', 'It is down.'));
    const { pieces, activities } = subscribe(world);
    await world.startWorker();
    await world.deliver({ manifest: { unreviewedDeltas: true } });
    await world.until('SUSPENDED');
    const before = pieces().length;
    expect(world.meter.requests).toHaveLength(2);
    await world.approve('op-2', 'reject');
    await world.until('BLOCKED');
    expect(pieces()).toHaveLength(before);
    expect(activities().slice(-2)).toEqual(['1 RUNNING', '1 ENDED']);
  });

  it('leaves no text in spans, headers or events (HK-1)', async () => {
    const world = await World.start({ model: () => ESCALATE });
    const events: BusMessage[] = [];
    world.bus.subscribeLive({
      subject: HOOK_SUBJECTS,
      handler: (message) => void events.push(message),
    });
    const { messages } = subscribe(world);
    await world.startWorker();
    await world.deliver({ manifest: { unreviewedDeltas: true } });
    await world.until('SUSPENDED');
    const traces = world.spans.spans();
    expect(traces.length).toBeGreaterThan(0);
    expect(JSON.stringify(traces)).not.toContain('amount_usd');
    await vi.waitFor(() => expect(events.length).toBeGreaterThan(0));
    expect(events.some(({ payload }) => Buffer.from(payload).includes('amount_usd'))).toBe(false);
    expect(messages.every(({ headers }) => Object.keys(headers).length === 0)).toBe(true);
  });

  it('does not affect the agent when publishing fails (SUP-1)', async () => {
    const world = await World.start({ model: scripts.model('auto-1000') });
    const bus = {
      publish: world.bus.publish.bind(world.bus),
      publishLive: () => {
        throw new UnavailableError('BUS_CLOSED', 'The bus is closed.');
      },
      subscribe: world.bus.subscribe.bind(world.bus),
      subscribeLive: world.bus.subscribeLive.bind(world.bus),
      hasSubscribers: world.bus.hasSubscribers.bind(world.bus),
      close: world.bus.close.bind(world.bus),
    };
    await world.startWorker({}, { bus });
    await world.deliver({ manifest: { unreviewedDeltas: true } });
    await world.until('COMPLETED');
    expect(world.meter.paid).toHaveLength(4);
  });
});
