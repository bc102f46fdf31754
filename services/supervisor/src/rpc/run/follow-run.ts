import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { SupervisorContext } from '../../context.ts';
import { type RunKey, runTopic } from '../../store/changes.ts';
import { loadRun } from '../../store/runs.ts';
import { readTimeline } from '../../store/timeline.ts';
import { eventMessage } from '../messages/run.ts';

const PAGE = 256;

/**
 * The events of a run after a place, first those recorded, then those to come: read from the rows
 * each time, so that there is neither gap nor duplicate. Ends with the result, or at once when the
 * place is at the end of a run that is over.
 * @throws NotFoundError RUN_NOT_FOUND; what `signal` was aborted with
 */
export async function* followRun(
  context: SupervisorContext,
  key: RunKey,
  after: number,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  const { store, config } = context;
  const changed = new ChangeAlarm();
  const unsubscribe = store.changes.subscribe(runTopic(key), () => changed.ring());
  const onAbort = () => changed.ring();
  signal.addEventListener('abort', onAbort);
  try {
    let last = after;
    while (true) {
      signal.throwIfAborted();
      // Read before the rows: whatever is in them when the run is over is all that a watch owes.
      const { ended_at: endedAt } = await loadRun(store.db, key);
      const rows = await readTimeline(store.db, key, last, PAGE);
      for (const row of rows) {
        const event = eventMessage(row);
        yield event;
        last = row.sequence;
        if (event.entry.case === 'result') return;
      }
      if (rows.length > 0) continue;
      if (endedAt !== null) return;
      await changed.wait(config.watchPollMs);
    }
  } finally {
    unsubscribe();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Remembers a ring that came while nobody waited, so that none is missed. */
class ChangeAlarm {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, or the last unheard one, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.#rung) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}
