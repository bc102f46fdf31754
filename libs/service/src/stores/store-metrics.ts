import type { Clock } from '@writ/kernel';
import { type CommitObserver, type OutboxDatabase, readBacklog, type Store } from '@writ/store';
import {
  context,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  type Telemetry,
  trace,
} from '@writ/telemetry';

/** Maximum number of links of a commit span. */
const MAX_LINKS = 32;
/** Minimum interval between log lines about a full disk, ms. */
const DISK_FULL_LOG_MS = 60_000;

/**
 * Reports every commit (SYS-1): the number of transactions, the duration, and, with internal spans, a child span of the
 * first request with links to the others. Logs that the disk is full when a write fails for this reason, at most once a
 * minute.
 */
export function observeCommits({ internalSpans, tracer, metrics, log }: Telemetry): CommitObserver {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return {
    diskFull: () => {
      if (performance.now() - loggedAt < DISK_FULL_LOG_MS) return;
      loggedAt = performance.now();
      log.error('disk full: the database rejects writes');
    },
    caller: () => (internalSpans ? trace.getSpanContext(context.active()) : undefined),
    committed: ({ callers, startedAt }) => {
      if (!internalSpans && !metrics.enabled) return;
      metrics.record('commits', callers.length);
      metrics.record('commitSeconds', (performance.now() - startedAt) / 1_000);
      const [first, ...others] = callers.filter((caller) => caller !== undefined);
      if (first === undefined) return;
      const links = others
        .slice(0, MAX_LINKS)
        .map((caller): Link => ({ context: caller as SpanContext }));
      const parent = trace.setSpanContext(ROOT_CONTEXT, first as SpanContext);
      const attributes = { 'writ.commit.size': callers.length };
      tracer.startSpan('commit', { startTime: startedAt, links, attributes }, parent).end();
    },
  };
}

/** Reports the number of events in a service's outbox that are not published yet, and the age of the oldest of them. */
export function observeOutbox<DB extends OutboxDatabase>(
  { metrics }: Telemetry,
  store: Store<DB>,
  clock: Clock,
): void {
  if (!metrics.enabled) return;
  const { db } = store as unknown as Store<OutboxDatabase>;
  metrics.observe('outboxBacklog', async () => [{ value: (await readBacklog(db)).count }]);
  metrics.observe('outboxAge', async () => {
    const { oldestAt } = await readBacklog(db);
    const ms = oldestAt === undefined ? 0 : clock.now().getTime() - oldestAt.getTime();
    return [{ value: Math.max(0, ms) / 1_000 }];
  });
}
