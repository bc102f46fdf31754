import { ManualClock } from '@writ/kernel';
import {
  appendOutbox,
  createOutboxRelay,
  type OutboxMessage,
  type OutboxRelayOptions,
  type RelayFailure,
  type Store,
} from '../src/index.ts';
import type { LedgerDatabase } from './ledger.ts';

/** Time of the messages. */
export const AT = new Date('2026-01-01T00:00:00Z');

/** A message with this event id. */
export function message(eventId: string): Required<OutboxMessage> {
  return {
    eventId,
    subject: `writ.hooks.v1.t.r.a.${eventId}`,
    payload: new TextEncoder().encode(eventId),
    headers: { traceparent: `00-${eventId}` },
  };
}

/** Appends messages with these event ids. */
export async function append(store: Store<LedgerDatabase>, ...ids: string[]): Promise<void> {
  await store.transaction(async (trx) => {
    for (const id of ids) await appendOutbox(trx, message(id), AT);
  });
}

/** Creates a relay to a bus that accepts all messages except those for which `refuse` returns true. */
export function relayTo(
  store: Store<LedgerDatabase>,
  refuse: (eventId: string) => boolean = () => false,
  options: Partial<
    Pick<
      OutboxRelayOptions<LedgerDatabase>,
      'batch' | 'markIntervalMs' | 'isClockConfirmed' | 'hasSubscribers'
    >
  > = {},
) {
  const accepted: Required<OutboxMessage>[] = [];
  const failures: RelayFailure[] = [];
  const clock = new ManualClock(AT);
  const relay = createOutboxRelay({
    store,
    publish: async (published) => {
      if (refuse(published.eventId)) throw new Error('the bus is down');
      accepted.push(published);
    },
    onError: (_error, failure) => failures.push(failure),
    clock,
    batch: 3,
    pollMs: 60_000,
    retryBaseMs: 1,
    retryMaxMs: 4,
    ...options,
  });
  const ids = () => accepted.map(({ eventId }) => eventId);
  return { relay, accepted, ids, failures, clock };
}

/** All rows of the outbox, in order. */
export const outboxRows = async (store: Store<LedgerDatabase>) =>
  await store.db.selectFrom('outbox').selectAll().orderBy('position').execute();
