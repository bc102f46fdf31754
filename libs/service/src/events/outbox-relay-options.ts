import type { Bus } from '@writ/bus';
import type { OutboxBacklog } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import { busFailures } from './bus-failures.ts';
import { tracedPublish, tracedPublishAll } from './traced-events.ts';

/**
 * Flush interval of the relay (see `nextFlush`), ms, so that the events of many steps share few commits. The supervisor
 * and spawn-budget set the interval to 0, so that they flush at once.
 */
const FLUSH_INTERVAL_MS = 50;
/** Maximum time before an accepted event is marked as published, ms, so that many marks share a commit. */
const MARK_INTERVAL_MS = 1_000;
/** Number of unpublished events from which a warning is logged; they take a few hundred megabytes. */
const BACKLOG_WARNING = 100_000;

/** The options of an outbox relay that depend on the bus and the log. */
export interface OutboxPublisher extends Pick<Bus, 'publish' | 'hasSubscribers'> {
  readonly publishAll: Bus['publishAll'];
  readonly flushIntervalMs: number;
  readonly markIntervalMs: number;
  readonly onSubscribersChange: (hasSubscribers: boolean) => void;
  readonly onError: (error: unknown, failure: object) => void;
  readonly backlog: {
    readonly warnAt: number;
    readonly onBacklog: (backlog: OutboxBacklog | undefined) => void;
  };
}

/**
 * Connects the outbox relay of a service to its bus and log (HK-2). Missing subscribers, as in a process without a
 * shared bus, are not a failure: one line is logged when events start to wait and one when delivery resumes. Events are
 * never dropped; a large backlog is logged.
 */
export function outboxPublisher(bus: Bus, telemetry: Telemetry): OutboxPublisher {
  const { log } = telemetry;
  const publishAll = bus.publishAll?.bind(bus);
  return {
    publish: tracedPublish(telemetry, (message) => bus.publish(message)),
    publishAll: publishAll && tracedPublishAll(telemetry, publishAll),
    flushIntervalMs: FLUSH_INTERVAL_MS,
    markIntervalMs: MARK_INTERVAL_MS,
    hasSubscribers: () => bus.hasSubscribers(),
    onSubscribersChange: (hasSubscribers) => {
      if (hasSubscribers) log.info('event delivery resumed');
      else log.info('no event subscriber; events remain in the outbox');
    },
    onError: busFailures(log, [], 'failed to publish event'),
    backlog: {
      warnAt: BACKLOG_WARNING,
      onBacklog: (backlog) => {
        if (backlog === undefined) log.info('outbox backlog back to normal');
        else log.warn(backlog, 'outbox backlog above threshold');
      },
    },
  };
}
