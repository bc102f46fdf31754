import type { BusMessage } from '../src/index.ts';

/** A handler that records its messages. */
export function keeper() {
  const kept: BusMessage[] = [];
  const handler = async (got: BusMessage): Promise<void> => {
    kept.push(got);
  };
  return { handler, ids: () => kept.map(({ eventId }) => eventId), kept };
}

/** A handler that blocks until it is released. */
export function waiter() {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const handler = async (): Promise<void> => {
    begun.resolve();
    await go.promise;
  };
  return { handler, begun: begun.promise, go: () => go.resolve() };
}
