import type { NatsServer } from '@writ/testing/nats';
import { startNatsServer } from '@writ/testing/nats';
import { expect } from 'vitest';
import { type Bus, type BusFailure, type BusMessage, createInProcessBus } from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';

/** A bus of one test, whose subjects begin with a unique token. */
export interface BusUnderTest {
  readonly bus: Bus;
  /** Failures of handlers. */
  readonly failures: Partial<BusFailure>[];
  /** A message to `a.b` below the token. */
  message(eventId: string, subject?: string): BusMessage;
  /** A subject below the token. */
  at(subject: string): string;
  /** Publishes like an outbox relay, with retries until the bus accepts the message. */
  publishWithRetry(message: BusMessage): Promise<void>;
}

/** Times that a test may shorten. */
export interface BusTimes {
  readonly handlerTimeoutMs?: number;
}

/** One kind of bus. */
export interface BusKind {
  open(times?: BusTimes): Promise<BusUnderTest>;
  /** Closes the opened buses. */
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
    publishWithRetry: async (message) => {
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

/** The in-process bus. */
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

/** NATS with one server and a stream for every test. */
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
