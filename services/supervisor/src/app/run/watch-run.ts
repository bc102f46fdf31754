import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm, watchIntervalMs } from '../../store/change/change-alarm.ts';
import { runEndTopic, runTopic } from '../../store/change/changes.ts';
import { readTimeline } from '../../store/run/read-timeline.ts';
import { hasEnded } from '../../store/run/runs.ts';
import { eventMessage, heartbeatMessage } from '../../wire/run.ts';
import { RunProgress } from './run-progress.ts';

const PAGE = 256;
/**
 * Minimum interval between two reads of the events of a run, ms, to limit the cost of reads. The page after a full page
 * and the end of the run are read without this delay.
 */
const BATCH_WINDOW_MS = 100;

/** Options of {@link followRun}. */
interface FollowOptions {
  /** Only events with a higher sequence are yielded; zero for all events. */
  readonly after: number;
  /** Whether live progress is delivered between the events. */
  readonly progress: boolean;
}

/**
 * Yields the events of a run after a sequence: first the recorded events, then new ones. All events are read from the
 * rows, so that there are no gaps or duplicates. Ends after the result, or at once if the run has ended and all events
 * are delivered. Live progress has no sequence, and is dropped if the watcher is slow. Yields a heartbeat after
 * `watchHeartbeatMs` without an event or live progress, unless a read of the rows blocks.
 * @throws NotFoundError RUN_NOT_FOUND; the abort reason of `signal`
 */
export async function* followRun(
  context: SupervisorContext,
  key: RunKey,
  { after, progress }: FollowOptions,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  const { store, config } = context;
  const changed = new ChangeAlarm(signal);
  let hasChanged = true;
  let readAt = Number.NEGATIVE_INFINITY;
  let endCheckedAt = Number.NEGATIVE_INFINITY;
  changed.on(store.changes, runTopic(key), () => {
    hasChanged = true;
  });
  changed.on(store.changes, runEndTopic(key), () => {
    readAt = Number.NEGATIVE_INFINITY;
    endCheckedAt = Number.NEGATIVE_INFINITY;
  });
  let live: RunProgress | undefined;
  try {
    let last = after;
    let sentAt = performance.now();
    let isOver = false;
    // Progress alone does not cause a read of the rows.
    const pollMs = () => watchIntervalMs(store.changes, config.watchPollMs);
    const dueInMs = () => readAt + (hasChanged ? BATCH_WINDOW_MS : pollMs()) - performance.now();
    while (true) {
      signal.throwIfAborted();
      if (dueInMs() <= 0) {
        hasChanged = false;
        readAt = performance.now();
        if (progress) live ??= new RunProgress(context, key, () => changed.ring());
        const rows = await readTimeline(store.db, key, last, PAGE);
        for (const row of rows) {
          const event = eventMessage(row);
          yield event;
          sentAt = performance.now();
          last = row.sequence;
          if (event.entry.case === 'result') return;
        }
        // The result is the last event. A watch that begins after the result finds no event, so it checks whether the
        // run has ended.
        if (rows.length === 0) {
          if (isOver) return;
          if (performance.now() - endCheckedAt >= config.watchPollMs) {
            endCheckedAt = performance.now();
            isOver = await hasEnded(store.db, key);
          }
        }
        if (isOver || rows.length === PAGE) {
          readAt = Number.NEGATIVE_INFINITY;
          continue;
        }
      }
      const shown = live?.take();
      if (shown !== undefined) yield shown;
      else if (performance.now() - sentAt >= config.watchHeartbeatMs) yield heartbeatMessage(last);
      else {
        const heartbeatInMs = sentAt + config.watchHeartbeatMs - performance.now();
        await changed.wait(Math.max(1, Math.min(dueInMs(), heartbeatInMs)));
        continue;
      }
      sentAt = performance.now();
    }
  } finally {
    changed.close();
    await live?.close();
  }
}
