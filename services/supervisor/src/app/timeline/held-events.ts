import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ByteCache, estimateBytes, type RunKey } from '@writ/kernel';
import { afterCommit } from '@writ/store';
import type { EventKey } from '../../store/run/recorded-events.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { timelineId } from '../../wire/hook-event.ts';

/** Maximum size of the held events, bytes; above it, the events of the least recently used run are dropped. */
const MAX_HELD_BYTES = 16_000_000;
/** Maximum size of the held events of one run, bytes; above it, they are dropped. */
const MAX_RUN_BYTES = 1_000_000;
/**
 * Added to the size of an event for each predecessor, bytes: each attempt to record the event looks up all
 * predecessors, so the limits also bound the time of an attempt (SYS-6).
 */
const PREDECESSOR_BYTES = 200;
/** Maximum memory of the ids of recorded events, bytes: some 6,000 ids. */
const MAX_RECORDED_BYTES = 2_000_000;

interface HeldEvent {
  readonly event: HookEvent;
  readonly bytes: number;
}

/**
 * Events that the bus delivered before their predecessors on the timeline (HK-1). They are kept only in memory, because
 * after a crash they are received again: the worker sends the same events with its next request, and worker and meter
 * return them when the agent ends.
 */
export class HeldEvents {
  readonly #runs = new ByteCache<ReadonlyMap<string, HeldEvent>>({
    name: 'held_events',
    maxBytes: MAX_HELD_BYTES,
    maxEntryBytes: MAX_RUN_BYTES,
  });
  readonly #recorded = new ByteCache<true>({
    name: 'recorded_events',
    maxBytes: MAX_RECORDED_BYTES,
  });

  /** Marks events as recorded on the timeline of a run, by their ids on the timeline, once `trx` commits. */
  noteRecorded(trx: SupervisorTransaction, run: RunKey, eventIds: readonly string[]): void {
    afterCommit(trx, () => {
      for (const id of eventIds) this.#recorded.set(`${nameOf(run)}/${id}`, true, 0);
    });
  }

  /** Whether an event is known to be on the timeline, so that another delivery of it needs no transaction. */
  isRecorded({ tenant, runId, eventId }: EventKey): boolean {
    return this.#recorded.get(`${nameOf({ tenant, runId })}/${eventId}`) === true;
  }

  /** The held events of a run, in the order of their delivery. */
  of(run: RunKey): readonly HookEvent[] {
    return Array.from(this.#runs.get(nameOf(run))?.values() ?? [], ({ event }) => event);
  }

  /** Whether events of a run are held. */
  has(run: RunKey): boolean {
    return this.#runs.get(nameOf(run)) !== undefined;
  }

  /** The runs with held events. */
  runs(): readonly RunKey[] {
    return [...this.#runs.values()].flatMap((events) => {
      const [first] = events.values();
      return first === undefined ? [] : [{ tenant: first.event.tenant, runId: first.event.runId }];
    });
  }

  /** Adds events to the held events of a run, and drops events that have since been recorded on the timeline. */
  hold(run: RunKey, events: readonly HookEvent[]): void {
    const name = nameOf(run);
    const held = new Map(this.#runs.get(name));
    for (const event of events) {
      const bytes = estimateBytes(event) + PREDECESSOR_BYTES * event.after.length;
      held.set(timelineId(event), { event, bytes });
    }
    for (const eventId of held.keys()) {
      if (this.isRecorded({ ...run, eventId })) held.delete(eventId);
    }
    if (held.size === 0) {
      this.#runs.delete(name);
      return;
    }
    const bytes = [...held.values()].reduce((sum, one) => sum + one.bytes, 0);
    this.#runs.set(name, held, bytes);
  }
}

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}
