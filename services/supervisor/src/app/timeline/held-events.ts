import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunKey } from '@writ/kernel';
import { afterCommit } from '@writ/store';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** Most events and ids in memory; beyond it, the events of the run that waits longest are dropped. */
const MAX_EVENTS = 10_000;

/**
 * Events that the bus delivered before those that precede them on the timeline (HK-1). They are in memory only: the
 * worker carries the same events with its next request, and worker and meter answer them when the agent ends.
 */
export class HeldEvents {
  readonly #runs = new Map<string, Map<string, HookEvent>>();
  readonly #recorded = new Set<string>();
  #count = 0;

  /** Notes, when `trx` commits, that events are on the timeline of a run. */
  noteRecorded(trx: SupervisorTransaction, run: RunKey, eventIds: readonly string[]): void {
    afterCommit(trx, () => {
      for (const id of eventIds) this.#recorded.add(`${nameOf(run)}/${id}`);
      for (const oldest of this.#recorded) {
        if (this.#recorded.size <= MAX_EVENTS) break;
        this.#recorded.delete(oldest);
      }
    });
  }

  /** Whether an event is known to be on the timeline, so that another delivery of it needs no transaction. */
  isRecorded({ tenant, runId, eventId }: RunKey & { readonly eventId: string }): boolean {
    return this.#recorded.has(`${nameOf({ tenant, runId })}/${eventId}`);
  }

  /** The held events of a run, in the order of their delivery. */
  of(run: RunKey): readonly HookEvent[] {
    return [...(this.#runs.get(nameOf(run))?.values() ?? [])];
  }

  /** The runs with held events. */
  runs(): readonly RunKey[] {
    return [...this.#runs.values()].flatMap((events) => {
      const [first] = events.values();
      return first === undefined ? [] : [{ tenant: first.tenant, runId: first.runId }];
    });
  }

  /** Holds those of the events that are not on the timeline by now. */
  hold(run: RunKey, events: readonly HookEvent[]): void {
    const name = nameOf(run);
    const held = this.#runs.get(name) ?? new Map<string, HookEvent>();
    this.#count -= held.size;
    for (const event of events) held.set(event.eventId, event);
    for (const event of held.values()) if (this.isRecorded(event)) held.delete(event.eventId);
    this.#count += held.size;
    if (held.size === 0) this.#runs.delete(name);
    else this.#runs.set(name, held);
    for (const [oldest, { size }] of this.#runs) {
      if (this.#count <= MAX_EVENTS || oldest === name) break;
      this.#runs.delete(oldest);
      this.#count -= size;
    }
  }
}

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}
