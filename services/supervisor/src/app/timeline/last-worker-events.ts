import type { RunKey } from '@writ/kernel';
import { lastEntries } from '../../store/run/read-timeline.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';
import { hookOfEntry, hookPayload } from '../../wire/timeline.ts';

/**
 * Maximum number of timeline entries that are read; larger than the number of events that a worker emits between two
 * commits.
 */
const LIMIT = 128;

/**
 * Returns the events of the worker among the last entries of a timeline. An order that ends agents sends them to the
 * worker, because the worker may have stopped after it sent the events and before it stored them (HK-1). A key without
 * `instance` selects all agents of the run.
 */
export async function lastWorkerEvents(
  db: SupervisorReader,
  { instance, ...run }: RunKey & { readonly instance?: string },
): Promise<readonly Uint8Array[]> {
  const entries = await lastEntries(db, run, LIMIT);
  return entries.flatMap((entry) => {
    const event = hookOfEntry(entry);
    if (event?.emitter !== 'agent-worker') return [];
    if (instance !== undefined && event.agent?.instance !== instance) return [];
    return [hookPayload(event)];
  });
}
