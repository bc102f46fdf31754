import {
  type BusFailure,
  type BusMessage,
  createInProcessBus,
  type InProcessBusOptions,
} from '../src/index.ts';

/** A message with one byte and a trace. */
export function message(eventId: string, subject = 'a.b'): BusMessage {
  return { eventId, subject, payload: new Uint8Array([1]), headers: { traceparent: 'tp' } };
}

/** Opens an in-process bus that records the failures of its handlers. */
export function open(options: Partial<InProcessBusOptions> = {}) {
  const failures: BusFailure[] = [];
  const bus = createInProcessBus({
    onError: (_error, failure) => failures.push(failure),
    ...options,
  });
  return { bus, failures };
}
