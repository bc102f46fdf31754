import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Bus, createInProcessBus, hookSubject } from '@writ/bus';
import { createNatsBus } from '@writ/bus/nats';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { isNatsAvailable, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { agent: 'worker', goal: 'Do it.' };

type Change = Omit<MessageInitShape<typeof HookEventSchema>, '$typeName'>;

/** Malformed events of a worker; each is published as a STEP_START event of an existing run. */
const MALFORMED: readonly (readonly [string, Change])[] = [
  ['an invalid id', { eventId: 'Some text' }],
  ['an invalid predecessor', { after: ['\u0000'] }],
  ['too many predecessors', { after: Array.from({ length: 40_000 }, (_, n) => `evt_${n}`) }],
  ['an invalid time', { eventTime: { seconds: 2n ** 62n } }],
];

const BUSES = [
  {
    name: 'the in-process bus',
    isAvailable: true,
    open: async (): Promise<{ readonly bus: Bus; readonly stop?: () => Promise<void> }> => ({
      bus: createInProcessBus({ onError: () => undefined }),
    }),
  },
  {
    name: 'the bus over NATS',
    isAvailable: isNatsAvailable(),
    open: async () => {
      const server = await startNatsServer();
      const bus = await createNatsBus({
        servers: [server.address],
        name: 'supervisor',
        streamBytes: 2 ** 20,
        retryBaseMs: 5,
        onError: () => undefined,
      });
      return { bus, stop: () => server.stop() };
    },
  },
];

describe.for(BUSES)('a malformed event on $name', ({ open, isAvailable }) => {
  const it_ = it.skipIf(!isAvailable);
  let supervisor: SupervisorUnderTest;
  let stop: (() => Promise<void>) | undefined;
  let runs = 0;
  beforeAll(async () => {
    if (!isAvailable) return;
    const opened = await open();
    stop = opened.stop;
    supervisor = await SupervisorUnderTest.start({ bus: opened.bus });
  });
  afterAll(async () => {
    await supervisor?.close();
    await stop?.();
  });

  async function startRun(): Promise<string> {
    runs += 1;
    const { run } = await supervisor.runs().startRun({ ...START, requestId: `req-${runs}` });
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    return run?.runId ?? '';
  }

  async function publish(runId: string, change: Change, bytes?: Uint8Array): Promise<void> {
    const event = create(HookEventSchema, {
      eventId: `bad-${runs}`,
      type: HookEventType.STEP_START,
      emitter: 'agent-worker',
      tenant: 'acme',
      runId,
      ...change,
    });
    await supervisor.bus.publish({
      eventId: event.eventId,
      subject: hookSubject({ tenant: 'acme', runId, event: 'STEP_START' }),
      payload: bytes ?? toBinary(HookEventSchema, event),
      headers: {},
    });
  }

  /** Publishes a valid event, cancels the run once it is recorded, and returns all STEP_START events of the timeline. */
  async function recordedWithNext(runId: string): Promise<string[]> {
    // NATS drops a message whose id another run has used.
    await publish(runId, { eventId: `good-${runs}` });
    const ids: string[] = [];
    for await (const { event } of supervisor.runs().watchRun({ runId })) {
      if (event?.entry.case !== 'hook') continue;
      const { type, eventId } = event.entry.value;
      if (type === HookEventType.STEP_START) ids.push(eventId);
      if (eventId === `good-${runs}`)
        await supervisor.runs().cancelRun({ requestId: `cancel-${runId}`, runId });
    }
    return ids;
  }

  it_('is dropped if it cannot be decoded, and later events are recorded (SYS-6)', async () => {
    const runId = await startRun();
    await publish(runId, {}, new Uint8Array([1]));
    expect(await recordedWithNext(runId)).toEqual([`good-${runs}`]);
  });

  it.skipIf(!isAvailable).each(MALFORMED)(
    'is dropped if it has %s, and later events are recorded (SYS-6)',
    async (_name, change) => {
      const runId = await startRun();
      await publish(runId, change);
      expect(await recordedWithNext(runId)).toEqual([`good-${runs}`]);
    },
  );
});
