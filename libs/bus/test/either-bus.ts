import type { NatsServer } from '@writ/testing/nats';
import { startNatsServer } from '@writ/testing/nats';
import { expect } from 'vitest';
import {
  type Bus,
  type BusFailure,
  type BusMessage,
  createInProcessBus,
  createNatsBus,
} from '../src/index.ts';

/** A bus of one test, whose subjects begin with a token of their own. */
export interface BusUnderTest {
  readonly bus: Bus;
  /** What handlers failed at. */
  readonly failures: Partial<BusFailure>[];
  /** A message to `a.b` under the test's own token. */
  message(eventId: string, subject?: string): BusMessage;
  /** A subject under the test's own token. */
  at(subject: string): string;
  /** Publishes as an outbox relay does: again and again, until the bus has taken it. */
  insist(message: BusMessage): Promise<void>;
}

/** Settings of a bus that a test may need to be short. */
export interface BusTimes {
  readonly handlerTimeoutMs?: number;
}

/** One kind of bus. */
export interface BusKind {
  open(times?: BusTimes): Promise<BusUnderTest>;
  /** Closes what was opened. */
  closeAll(): Promise<void>;
}

let tests = 0;

function underTest(bus: Bus, token: string, failures: Partial<BusFailure>[]): BusUnderTest {
  const at = (subject: string): string => `${token}.${subject}`;
  return {
    bus,
    failures,
    at,
    message: (eventId, subject = 'a.b') => ({
      eventId,
      subject: at(subject),
      payload: new Uint8Array([1]),
      headers: { traceparent: 'tp' },
    }),
    insist: async (message) => {
      for (;;) {
        try {
          return await bus.publish(message);
        } catch (error) {
          expect(error).toMatchObject({ kind: 'unavailable' });
        }
      }
    },
  };
}

/** The bus of one process. */
export function inProcess(): BusKind {
  const opened: Bus[] = [];
  return {
    open: async (times = {}) => {
      const failures: Partial<BusFailure>[] = [];
      const onError = (_error: unknown, failure: BusFailure) => failures.push(failure);
      const bus = createInProcessBus({ onError, ...times });
      opened.push(bus);
      tests += 1;
      return underTest(bus, `t${tests}`, failures);
    },
    closeAll: async () => {
      await Promise.all(opened.splice(0).map((bus) => bus.close()));
    },
  };
}

/** NATS, every test with a stream of its own on one server. */
export function overNats(): BusKind {
  let starting: Promise<NatsServer> | undefined;
  const opened: Bus[] = [];
  return {
    open: async (times = {}) => {
      starting ??= startNatsServer();
      const { address } = await starting;
      tests += 1;
      const token = `t${tests}`;
      const failures: Partial<BusFailure>[] = [];
      const bus = await createNatsBus({
        servers: [address],
        name: token,
        streams: [{ name: token, subjects: [`${token}.>`] }],
        streamBytes: 2 ** 20,
        retryBaseMs: 5,
        retryMaxMs: 50,
        onError: (_error, failure) => failures.push(failure),
        ...times,
      });
      opened.push(bus);
      return underTest(bus, token, failures);
    },
    closeAll: async () => {
      await Promise.all(opened.splice(0).map((bus) => bus.close()));
      await (await starting)?.stop();
      starting = undefined;
    },
  };
}
