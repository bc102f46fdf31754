import type { Bus } from '@writ/bus';
import type { OutboxBacklog } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import { tracedPublish, tracedPublishAll } from './traced-events.ts';

/**
 * Milliseconds that an event waits for others after a pause, and longer in a stream (nextFlush), so that
 * what many steps tell costs few commits beside theirs. Whoever waits for the last events of a run
 * hurries its relay.
 */
const LINGER_MS = 50;
/** Milliseconds that an accepted event may stay unmarked, so that marks share a commit. */
const MARK_INTERVAL_MS = 1_000;
/** Events that wait before somebody should look: some hundred megabytes. */
const BACKLOG_WARNING = 100_000;

/** What the relay of a service's outbox needs of the bus, and of whoever reads the log. */
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
 * Where a service's outbox leads (HK-2). Events that nobody takes, as in a process that shares its bus
 * with nobody, are a state and no failure: one line when they begin to wait, and one when they go. None is ever
 * dropped; when very many wait, the log says so.
 */
export function outboxPublisher(bus: Bus, telemetry: Telemetry): OutboxPublisher {
  const { log } = telemetry;
  const publishAll = bus.publishAll?.bind(bus);
  return {
    publish: tracedPublish(telemetry, (message) => bus.publish(message)),
    publishAll: publishAll && tracedPublishAll(telemetry, publishAll),
    flushIntervalMs: LINGER_MS,
    markIntervalMs: MARK_INTERVAL_MS,
    hasSubscribers: () => bus.hasSubscribers(),
    onSubscribersChange: (hasSubscribers) => {
      if (hasSubscribers) log.info('Events are taken again.');
      else log.info('Nobody takes events here now; they wait in the outbox.');
    },
    onError: (error, failure) => log.warn({ err: error, ...failure }, 'event not taken'),
    backlog: {
      warnAt: BACKLOG_WARNING,
      onBacklog: (backlog) => {
        if (backlog === undefined) log.info('The outbox has gone down again.');
        else log.warn(backlog, 'Many events wait in the outbox, which keeps all of them.');
      },
    },
  };
}
