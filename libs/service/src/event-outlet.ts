import type { Bus } from '@writ/bus';
import type { Logger } from '@writ/telemetry';

/** What the relay of a service's outbox needs of the bus, and of whoever reads the log. */
export interface EventOutlet extends Pick<Bus, 'publish' | 'attended'> {
  readonly onAttendance: (attended: boolean) => void;
  readonly onError: (error: unknown, failure: object) => void;
}

/**
 * Where a service's outbox leads (HK-2). Events that nobody takes, as in a process that shares its bus
 * with nobody, are a state and no failure: one line when they begin to wait, and one when they go.
 */
export function eventOutlet(bus: Bus, log: Logger): EventOutlet {
  return {
    publish: (message) => bus.publish(message),
    attended: () => bus.attended(),
    onAttendance: (attended) => {
      if (attended) log.info('Events are taken again.');
      else log.info('Nobody takes events here now; they wait in the outbox.');
    },
    onError: (error, failure) => log.warn({ err: error, ...failure }, 'event not taken'),
  };
}
