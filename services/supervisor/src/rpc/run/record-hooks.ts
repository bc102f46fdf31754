import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { DurableOptions } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { hookEntry } from '../../events.ts';
import { noteLapse, noteSlotChange, type SlotChange } from '../../store/agent/pauses.ts';
import { findRun } from '../../store/run/runs.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';
import { isOwnEvent, timelineId } from './hook-origin.ts';

/**
 * Takes hook events from the bus into the timeline of their run (HK-1). Events without a run, or of a
 * run that is not known here, belong to no timeline. What spawn-budget tells of pauses and of lapsed
 * leases holds here, too (SB-4, EM-1). What is not an event of its subject counts for nothing.
 */
export function recordHooks(
  store: SupervisorStore,
  clock: Clock,
  log: Logger,
): DurableOptions['handler'] {
  return async (message) => {
    const { eventId, subject } = message;
    const event = fromBinary(HookEventSchema, message.payload);
    if (!isOwnEvent(event, message)) {
      log.warn({ event_id: eventId, subject }, 'event that is not what its subject says');
      return;
    }
    const key = { tenant: event.tenant, runId: event.runId };
    await store.transaction(
      async (trx) => {
        if (event.runId === '' || (await findRun(trx, key)) === undefined) {
          log.debug({ event_id: eventId, run_id: event.runId }, 'event of no known run');
          return;
        }
        const now = clock.now();
        await appendTimeline(
          trx,
          { ...key, eventId: timelineId(event), entry: hookEntry(event) },
          now,
        );
        const change = slotChangeOf(event);
        if (change === undefined || event.agent === undefined) return;
        const agent = { ...key, instance: event.agent.instance };
        if (event.status === LAPSED) await noteLapse(trx, agent, change.at);
        else await noteSlotChange(trx, agent, change, now);
      },
      { background: true },
    );
  };
}

/** Status of an AGENT_PAUSED event: nobody has the slot instead, the lease on it ended. */
const LAPSED = 'lapsed';

const SLOT_CHANGES: Readonly<Partial<Record<HookEventType, SlotChange['change']>>> = {
  [HookEventType.AGENT_PAUSED]: 'paused',
  [HookEventType.AGENT_RESUMED]: 'resumed',
};

function slotChangeOf({ type, emitter, eventTime }: HookEvent): SlotChange | undefined {
  const change = SLOT_CHANGES[type];
  if (change === undefined || emitter !== 'spawn-budget' || eventTime === undefined)
    return undefined;
  return { change, at: timestampDate(eventTime) };
}
