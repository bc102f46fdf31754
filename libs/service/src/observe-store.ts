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

/** The most requests that the span of one commit links to. */
const MAX_LINKS = 32;

/**
 * Tells of commits (SYS-1): how many transactions shared each and how long it took, and a span below
 * the first request that it carried, with links to the others. Undefined when nobody takes that.
 */
export function observeCommits({ traces, tracer, metrics }: Telemetry): CommitObserver | undefined {
  if (!traces && !metrics.enabled) return undefined;
  return {
    caller: () => (traces ? trace.getSpanContext(context.active()) : undefined),
    committed: ({ callers, startedAt }) => {
      metrics.record('commits', callers.length);
      metrics.record('commitSeconds', (Date.now() - startedAt) / 1_000);
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

/** Tells how many events wait in a service's outbox, and for how long the oldest does. */
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
