import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import { type RunKey, runTopic } from '../../store/change/changes.ts';
import { loadRun } from '../../store/run/runs.ts';
import { readTimeline } from '../../store/run/timeline.ts';
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
  const changed = new ChangeAlarm(signal);
  const unsubscribe = store.changes.subscribe(runTopic(key), () => changed.ring());
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
    changed.close();
  }
}
