import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import { runEndTopic, runTopic } from '../../store/change/changes.ts';
import { loadRun } from '../../store/run/runs.ts';
import { readTimeline } from '../../store/run/timeline.ts';
import { eventMessage } from '../../wire/run.ts';
import { RunProgress } from './run-progress.ts';

const PAGE = 256;
/** What a run tells within so many milliseconds, all but its end, a watcher is told together: reading rows has its price. */
const APART_MS = 100;

/** What of a run is followed. */
interface FollowOptions {
  /** The place in the timeline that comes before the first event; zero for the beginning. */
  readonly after: number;
  /** Whether live progress is shown between the events. */
  readonly progress: boolean;
}

/**
 * The events of a run after a place, first those recorded, then those to come: read from the rows
 * each time, so that there is neither gap nor duplicate. Ends with the result, or at once when the
 * place is at the end of a run that is over. Live progress comes between them, has no place and is
 * lost when the watcher is slow.
 * @throws NotFoundError RUN_NOT_FOUND; what `signal` was aborted with
 */
export async function* followRun(
  context: SupervisorContext,
  key: RunKey,
  { after, progress }: FollowOptions,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  const { store, config } = context;
  const news = new ChangeAlarm(signal);
  let hasChanged = true;
  let readAt = Number.NEGATIVE_INFINITY;
  const unsubscribe = store.changes.subscribe(runTopic(key), () => {
    hasChanged = true;
    news.ring();
  });
  const unsubscribeEnd = store.changes.subscribe(runEndTopic(key), () => {
    readAt = Number.NEGATIVE_INFINITY;
    news.ring();
  });
  let live: RunProgress | undefined;
  try {
    let last = after;
    // Progress alone is no reason to read the rows.
    const dueInMs = () => readAt + (hasChanged ? APART_MS : config.watchPollMs) - performance.now();
    while (true) {
      signal.throwIfAborted();
      if (dueInMs() <= 0) {
        hasChanged = false;
        readAt = performance.now();
        // Read before the rows: whatever is in them when the run is over is all that a watch owes.
        const { ended_at: endedAt } = await loadRun(store.db, key);
        if (progress) live ??= new RunProgress(context, key, () => news.ring());
        const rows = await readTimeline(store.db, key, last, PAGE);
        for (const row of rows) {
          const event = eventMessage(row);
          yield event;
          last = row.sequence;
          if (event.entry.case === 'result') return;
        }
        if (rows.length === PAGE) {
          readAt = Number.NEGATIVE_INFINITY;
          continue;
        }
        if (endedAt !== null) return;
      }
      const shown = live?.take();
      if (shown !== undefined) yield shown;
      else await news.wait(Math.max(1, dueInMs()));
    }
  } finally {
    unsubscribe();
    unsubscribeEnd();
    news.close();
    await live?.close();
  }
}
