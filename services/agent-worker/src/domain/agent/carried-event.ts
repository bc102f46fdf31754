/** Maximum number of events in a request to the supervisor. */
const MAX_EVENTS = 256;

/**
 * An event of an agent that a request to the supervisor contains, with its bytes in base64 so that it can be stored as
 * JSON. `mac` is empty for events that the worker emits.
 */
export interface CarriedEvent {
  /** The encoded HookEvent in base64. */
  readonly event: string;
  readonly mac: string;
}

/** Reads the stored events of an agent. */
export function readEvents(json: string): CarriedEvent[] {
  return JSON.parse(json) as CarriedEvent[];
}

/** Returns an event with its authentication code, if it has one. */
export function carriedEvent(event: Uint8Array, mac?: Uint8Array): CarriedEvent {
  return {
    event: Buffer.from(event).toString('base64'),
    mac: Buffer.from(mac ?? []).toString('base64'),
  };
}

/**
 * Appends the events of `added` that `events` does not contain. Keeps only the last 256 events; the supervisor receives
 * older events only from the bus.
 */
export function addEvents(
  events: readonly CarriedEvent[],
  added: readonly CarriedEvent[],
): CarriedEvent[] {
  const known = new Set(events.map(({ event }) => event));
  return [...events, ...added.filter(({ event }) => !known.has(event))].slice(-MAX_EVENTS);
}
