import { toBinary } from '@bufbuild/protobuf';
import { type BusMessage, createInProcessBus, hookSubject } from '@writ/bus';
import { HookEventSchema, type HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { describe, expect, it, vi } from 'vitest';
import { type hook, llmEnd, watched } from '../test/hook-events.ts';
import { followBus } from './follow-bus.ts';
import { followEvents } from './follow-events.ts';
import { HOOK_EVENTS } from './hook-context.ts';

function messageOf(event: ReturnType<typeof hook>): BusMessage {
  return {
    eventId: event.eventId,
    subject: hookSubject({ tenant: event.tenant, runId: event.runId, event: 'LLM_END' }),
    payload: toBinary(HookEventSchema, event),
    headers: {},
  };
}

/** An event of a type that a later version has added. */
const unknown = () => ({ ...llmEnd('e2'), type: 99 as HookEventType });

const openBus = () =>
  createInProcessBus({
    onError: (error) => {
      throw error;
    },
  });

describe('followBus', () => {
  it('dispatches a repeated event once (HK-2, HK-3)', async () => {
    const bus = openBus();
    const { manager } = watched();
    const seen: string[] = [];
    manager.on('LLM_END', ({ event_id }) => seen.push(event_id));
    await followBus(bus, manager, { durable: 'costs' });
    for (const id of ['e1', 'e1', 'e2']) await bus.publish(messageOf(llmEnd(id)));
    expect(seen).toEqual(['e1', 'e2']);
    await bus.close();
  });

  it('skips events of unknown types (BD-6, HK-3)', async () => {
    const bus = openBus();
    const { manager } = watched();
    const seen: string[] = [];
    manager.on('LLM_END', ({ event_id }) => seen.push(event_id));
    await followBus(bus, manager, { durable: 'costs' });
    for (const event of [llmEnd('e1'), unknown(), llmEnd('e3')])
      await bus.publish(messageOf(event));
    expect(seen).toEqual(['e1', 'e3']);
    await bus.close();
  });

  it('drops an event that cannot be decoded, and reports it by its id (HK-3, SYS-6)', async () => {
    const errors: unknown[] = [];
    const bus = createInProcessBus({ onError: (error) => errors.push(error) });
    const { manager } = watched();
    const seen: string[] = [];
    manager.on('LLM_END', ({ event_id }) => seen.push(event_id));
    await followBus(bus, manager, { durable: 'costs' });
    await bus.publish({ ...messageOf(llmEnd('e1')), payload: new Uint8Array([1]) });
    const eventTime = {
      $typeName: 'google.protobuf.Timestamp',
      seconds: 2n ** 62n,
      nanos: 0,
    } as const;
    await bus.publish(messageOf({ ...llmEnd('e2'), eventTime }));
    await bus.publish({
      ...messageOf(llmEnd('e3')),
      eventId: 'Some text',
      payload: new Uint8Array([1]),
    });
    await bus.publish(messageOf(llmEnd('e4')));
    expect(seen).toEqual(['e4']);
    const malformed = (id: string) => ({
      reason: 'MALFORMED_MESSAGE',
      message: `Event ${id} is not a valid hook event.`,
    });
    expect(errors).toMatchObject([malformed('e1'), malformed('e2'), malformed('(invalid id)')]);
    await bus.close();
  });

  it('does not block publishers with a slow callback, and reports missed events (HK-3)', async () => {
    const bus = openBus();
    const { manager } = watched();
    const [begun, release, done] = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const seen: string[] = [];
    manager.on('LLM_END', async ({ event_id }) => {
      seen.push(event_id);
      begun?.resolve();
      if (event_id === 'e1') await release?.promise;
      if (event_id === 'e400') done?.resolve();
    });
    const onMissed = vi.fn();
    await followBus(bus, manager, { onMissed });
    await bus.publish(messageOf(llmEnd('e1')));
    await begun?.promise;
    for (let n = 2; n <= 400; n += 1) await bus.publish(messageOf(llmEnd(`e${n}`)));
    release?.resolve();
    await done?.promise;
    expect(onMissed).toHaveBeenCalledExactlyOnceWith(399 - 256);
    expect(seen).toHaveLength(257);
    await bus.close();
  });
});

describe('followEvents', () => {
  it('dispatches the hook events of a watched run in their order (HK-3)', async () => {
    const { manager } = watched();
    const seen: string[] = [];
    for (const event of HOOK_EVENTS) manager.on(event, ({ event_id }) => seen.push(event_id));
    async function* events() {
      yield { entry: { case: 'hook' as const, value: llmEnd('e1') } };
      yield { entry: { case: undefined } };
      yield { event: { entry: { case: 'hook' as const, value: llmEnd('e2') } } };
      yield {};
    }
    await followEvents(events(), manager);
    expect(seen).toEqual(['e1', 'e2']);
  });

  it('skips events of unknown types (BD-6, HK-3)', async () => {
    const { manager } = watched();
    const seen: string[] = [];
    manager.on('LLM_END', ({ event_id }) => seen.push(event_id));
    async function* events() {
      for (const value of [llmEnd('e1'), unknown(), llmEnd('e3')])
        yield { entry: { case: 'hook' as const, value } };
    }
    await followEvents(events(), manager);
    expect(seen).toEqual(['e1', 'e3']);
  });
});
