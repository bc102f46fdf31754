import { setTimeout } from 'node:timers/promises';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm, watchIntervalMs } from '../../store/change/change-alarm.ts';
import { runsTopic } from '../../store/change/changes.ts';
import { runsChangedSince } from '../../store/run/run-lists.ts';
import { type RunView, readRuns } from './read-runs.ts';

/** Overlap of consecutive reads, ms, because a commit may become visible after a commit with a later timestamp. */
const OVERLAP_MS = 5_000;
/** Minimum time between two reads, ms, regardless of how many runs change. */
const INTERVAL_MS = 250;
/** Maximum number of runs per read. */
const BATCH = 200;

/**
 * Yields a first heartbeat, then the runs of a tenant that start, change their state or end. Reads rows after each
 * change notification, at most four times a second, and at an interval because a notification may be lost. Yields a
 * heartbeat after `watchHeartbeatMs` without a run, provided that the rows can be read (SYS-4).
 */
export async function* watchRuns(
  context: Pick<SupervisorContext, 'store' | 'config' | 'clock'>,
  tenant: string,
  signal: AbortSignal,
): AsyncGenerator<RunView | 'heartbeat'> {
  const { store, config, clock } = context;
  const changed = new ChangeAlarm(signal);
  changed.on(store.changes, runsTopic(tenant));
  try {
    const sent = new Map<string, string>();
    let since = new Date(clock.now().getTime() - OVERLAP_MS);
    let sentAt = Number.NEGATIVE_INFINITY;
    while (true) {
      signal.throwIfAborted();
      const readAt = clock.now();
      const rows = await runsChangedSince(store.db, tenant, since);
      // Skips changes before the first heartbeat, because clients list the runs after they receive it.
      const isFirst = sentAt === Number.NEGATIVE_INFINITY;
      if (isFirst || performance.now() - sentAt >= config.watchHeartbeatMs) {
        yield 'heartbeat';
        sentAt = performance.now();
      }
      const fresh = isFirst ? [] : rows.filter((row) => sent.get(row.run_id) !== versionOf(row));
      sent.clear();
      for (const row of rows) sent.set(row.run_id, versionOf(row));
      for (let at = 0; at < fresh.length; at += BATCH) {
        const ids = fresh.slice(at, at + BATCH).map((row) => row.run_id);
        for (const run of await readRuns(context, tenant, ids)) yield run;
        sentAt = performance.now();
      }
      since = new Date(readAt.getTime() - OVERLAP_MS);
      const heartbeatInMs = sentAt + config.watchHeartbeatMs - performance.now();
      await setTimeout(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      const pollMs = watchIntervalMs(store.changes, config.watchPollMs);
      await changed.wait(Math.max(1, Math.min(pollMs, heartbeatInMs - INTERVAL_MS)));
    }
  } finally {
    changed.close();
  }
}

function versionOf({ state, changed_at }: { readonly state: string; readonly changed_at: Date }) {
  return `${state} ${changed_at.getTime()}`;
}
