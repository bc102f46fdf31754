import { type Calls, FORCED_END_MS } from '../calls/calls.ts';
import type { Health } from './health.ts';
import type { Listener } from './listener.ts';

const DEFAULT_GRACE_MS = 10_000;

interface Parts {
  readonly health: Health;
  readonly calls: Calls;
  /** Responses to requests other than RPCs. */
  readonly responses?: { idle(limitMs: number): Promise<void> };
  readonly listener: Listener;
  /**
   * Closes idle connections and sends GOAWAY on the others. Called before and after the drain.
   */
  readonly drainConnections: () => void;
}

/** Creates the `close` function of a server: idempotent, and bounded in time. */
export function createClose(parts: Parts): (graceMs?: number) => Promise<void> {
  let closing: Promise<void> | undefined;
  return (graceMs = DEFAULT_GRACE_MS) => {
    closing ??= close(parts, graceMs);
    return closing;
  };
}

async function close(parts: Parts, graceMs: number): Promise<void> {
  const { health, calls, responses, listener, drainConnections } = parts;
  health.shutDown();
  // Health watchers receive NOT_SERVING before their stream ends.
  await new Promise(setImmediate);
  void listener.stopAccepting();
  drainConnections();
  await Promise.all([calls.drain(graceMs), responses?.idle(graceMs + FORCED_END_MS)]);
  drainConnections();
  await listener.close();
}
