/** Maximum number of events in a request to the supervisor. */
const MAX_EVENTS = 256;

/** An event of an agent for the supervisor, as JSON; `mac` is empty for events of the worker itself. */
export interface CarriedEvent {
  /** The encoded HookEvent in base64. */
  readonly event: string;
  readonly mac: string;
}

/** Reads the stored events of an agent. */
export function readEvents(json: string): CarriedEvent[] {
  return JSON.parse(json) as CarriedEvent[];
}

/** An event with its authentication, if it has one. */
export function carriedEvent(event: Uint8Array, mac?: Uint8Array): CarriedEvent {
  return {
    event: Buffer.from(event).toString('base64'),
    mac: Buffer.from(mac ?? []).toString('base64'),
  };
}

/** Adds events that are not among `events`. Keeps the last 256; only the bus delivers the older ones. */
export function addEvents(
  events: readonly CarriedEvent[],
  added: readonly CarriedEvent[],
): CarriedEvent[] {
  const known = new Set(events.map(({ event }) => event));
  return [...events, ...added.filter(({ event }) => !known.has(event))].slice(-MAX_EVENTS);
}
