import type { BusMessage, DurableOptions } from '@writ/bus';
import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { noteLeaseExpiry, noteSlotChange } from '../../store/agent/pauses.ts';
import { noteWait } from '../../store/agent/waits.ts';
import { findRun } from '../../store/run/runs.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import type { SupervisorStore, SupervisorTransaction } from '../../store/supervisor-store.ts';
import {
  isOnTimeline,
  readHookEvent,
  slotChangeFrom,
  timelineId,
  waitChangeFrom,
} from '../../wire/hook-event.ts';
import { encodeHook } from '../../wire/timeline.ts';

/**
 * Message handlers that append hook events to the timelines of their runs (HK-1) and apply pauses and expired leases
 * and waits that spawn-budget reports (SB-4, EM-1). They discard an event without a known run and an event that does not match
 * its subject.
 */
export function recordHooks(
  store: SupervisorStore,
  clock: Clock,
  log: Logger,
): Pick<Required<DurableOptions>, 'handler' | 'handleAll'> {
  const read = (message: BusMessage): HookEvent[] => {
    const event = readHookEvent(message);
    // The timeline has the supervisor's own events since the transactions that emitted them.
    if (event?.emitter === 'supervisor') return [];
    if (event !== undefined) return [event];
    const { eventId, subject } = message;
    log.warn({ event_id: eventId, subject }, 'event does not match its subject');
    return [];
  };
  const handleAll = async (messages: readonly BusMessage[]): Promise<void> => {
    const events = messages.flatMap(read);
    if (events.length === 0) return;
    await store.transaction(
      async (trx) => {
        const now = clock.now();
        const known = new KnownRuns(trx);
        for (const event of events) {
          if (await known.has(event)) await recordEvent(trx, event, now);
          else log.debug({ event_id: event.eventId, run_id: event.runId }, 'event of unknown run');
        }
      },
      { background: true },
    );
  };
  return { handler: (message) => handleAll([message]), handleAll };
}

/** Checks which runs exist, with one query per run. */
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
  if (isOnTimeline(event)) {
    const entry = encodeHook(event);
    await appendTimeline(trx, { ...key, eventId: timelineId(event), entry }, now);
  }
  if (event.agent === undefined) return;
  const agent = { ...key, instance: event.agent.instance };
  const wait = waitChangeFrom(event);
  if (wait !== undefined) await noteWait(trx, agent, wait);
  const slot = slotChangeFrom(event);
  if (slot === undefined) return;
  if (slot.change === 'lease_expired') await noteLeaseExpiry(trx, agent, slot.at);
  else await noteSlotChange(trx, agent, slot, now);
}
