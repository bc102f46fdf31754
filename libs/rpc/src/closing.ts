import type { Calls } from './calls.ts';
import type { Health } from './health.ts';
import type { Listener } from './listener.ts';

const DEFAULT_GRACE_MS = 10_000;

interface Parts {
  readonly health: Health;
  readonly calls: Calls;
  readonly listener: Listener;
  /**
   * Closes idle connections, and tells the clients of busy ones to open no more streams there.
   * Called when the drain begins and when it is over.
   */
  readonly sayGoodbye: () => void;
}

/** The `close` of a server: drains once, however often it is called, and never hangs. */
export function closer(parts: Parts): (graceMs?: number) => Promise<void> {
  let closing: Promise<void> | undefined;
  return (graceMs = DEFAULT_GRACE_MS) => {
    closing ??= close(parts, graceMs);
    return closing;
  };
}

async function close(parts: Parts, graceMs: number): Promise<void> {
  const { health, calls, listener, sayGoodbye } = parts;
  health.shutDown();
  // Whoever watches is told before its stream ends.
  await new Promise(setImmediate);
  void listener.stopAccepting();
  sayGoodbye();
  await calls.drain(graceMs);
  sayGoodbye();
  await listener.close();
}
