import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type BusMessage, hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { expect, it } from 'vitest';
import type { SupervisorContext } from '../../context.ts';
import { HeldEvents } from './held-events.ts';
import { recordBusEvents } from './record-bus-events.ts';

const SUBJECT = hookSubject({ tenant: 't1', runId: 'r1', event: 'STEP_START' });

function messageOf(change: Omit<MessageInitShape<typeof HookEventSchema>, '$typeName'>) {
  const event = create(HookEventSchema, {
    eventId: 'evt_1',
    type: HookEventType.STEP_START,
    emitter: 'agent-worker',
    tenant: 't1',
    runId: 'r1',
    ...change,
  });
  const { eventId } = event;
  const payload = toBinary(HookEventSchema, event);
  return { eventId, subject: SUBJECT, payload, headers: {} };
}

/** Handles a message that is dropped before the store is used; returns the logged lines. */
async function linesOf(message: BusMessage): Promise<unknown[]> {
  const lines: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void lines.push(line) };
  const { handler } = recordBusEvents({
    store: { replicas: { shared: false } },
    heldEvents: new HeldEvents(),
    telemetry: { log },
  } as unknown as SupervisorContext);
  await handler(message);
  return lines;
}

it('logs one line with ids and without content for each event that it drops (SYS-4, SYS-6)', async () => {
  const dropped = 'dropped an event: malformed, or does not match its subject';
  const line = [{ event_id: 'evt_1', subject: SUBJECT }, dropped];
  const bad = [
    { ...messageOf({}), payload: new Uint8Array([1]) },
    messageOf({ after: ['Some text'] }),
    messageOf({ after: Array.from({ length: 2_049 }, (_, n) => `evt_${n}`) }),
    messageOf({ eventTime: { seconds: 2n ** 62n } }),
    messageOf({ runId: 'r2' }),
  ];
  for (const message of bad) expect(await linesOf(message)).toEqual([line]);
  expect(await linesOf(messageOf({ eventId: 'Some text' }))).toEqual([
    [{ event_id: undefined, subject: SUBJECT }, dropped],
  ]);
});
