import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { BusMessage, DurableOptions } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { noteLapse, noteSlotChange, type SlotChange } from '../../store/agent/pauses.ts';
import { findRun } from '../../store/run/runs.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import type { SupervisorStore, SupervisorTransaction } from '../../store/supervisor-store.ts';
import { hookEntry } from '../../wire/timeline.ts';
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
): Pick<Required<DurableOptions>, 'handler' | 'handleAll'> {
  const own = (message: BusMessage): HookEvent[] => {
    const { eventId, subject } = message;
    const event = fromBinary(HookEventSchema, message.payload);
    if (isOwnEvent(event, message)) return [event];
    log.warn({ event_id: eventId, subject }, 'event that is not what its subject says');
    return [];
  };
  const handleAll = async (messages: readonly BusMessage[]): Promise<void> => {
    const events = messages.flatMap(own);
    if (events.length === 0) return;
    await store.transaction(
      async (trx) => {
        const now = clock.now();
        const known = new KnownRuns(trx);
        for (const event of events) {
          if (await known.has(event)) await recordEvent(trx, event, now);
          else log.debug({ event_id: event.eventId, run_id: event.runId }, 'event of no known run');
        }
      },
      { background: true },
    );
  };
  return { handler: (message) => handleAll([message]), handleAll };
}

/** Runs that there are, each looked for once. */
class KnownRuns {
  readonly #trx: SupervisorTransaction;
  readonly #known = new Map<string, boolean>();

  constructor(trx: SupervisorTransaction) {
    this.#trx = trx;
  }

  async has({ tenant, runId }: HookEvent): Promise<boolean> {
    if (runId === '') return false;
    const key = `${tenant}/${runId}`;
    const known =
      this.#known.get(key) ?? (await findRun(this.#trx, { tenant, runId })) !== undefined;
    this.#known.set(key, known);
    return known;
  }
}

async function recordEvent(trx: SupervisorTransaction, event: HookEvent, now: Date): Promise<void> {
  const key = { tenant: event.tenant, runId: event.runId };
  await appendTimeline(trx, { ...key, eventId: timelineId(event), entry: hookEntry(event) }, now);
  const change = slotChangeOf(event);
  if (change === undefined || event.agent === undefined) return;
  const agent = { ...key, instance: event.agent.instance };
  if (event.status === LAPSED) await noteLapse(trx, agent, change.at);
  else await noteSlotChange(trx, agent, change, now);
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
