import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { InvalidRequestError } from '@writ/kernel';
import type { BusMessage } from '../bus.ts';

/** The header by which JetStream deduplicates messages (HK-2). */
const MESSAGE_ID = 'Nats-Msg-Id';

/**
 * Encodes the headers of a message.
 * @throws InvalidRequestError INVALID_HEADER for a header that the server interprets
 */
export function toNatsHeaders({ eventId, headers: own }: BusMessage): MsgHdrs {
  const carried = headers();
  for (const [name, value] of Object.entries(own)) {
    if (/^nats-/i.test(name)) {
      throw new InvalidRequestError(
        'INVALID_HEADER',
        `The header ${name} must not begin with Nats-, which is reserved for the server.`,
        { field: 'headers' },
      );
    }
    carried.set(name, value);
  }
  carried.set(MESSAGE_ID, eventId);
  return carried;
}

/** A message as NATS delivers or stores it. */
export type RawMessage = Pick<Msg, 'subject' | 'data'> & { readonly headers?: MsgHdrs | undefined };

/** The event id of a message; empty if it has none. */
export function eventIdOf({ headers: carried }: RawMessage): string {
  return carried?.get(MESSAGE_ID) ?? '';
}

/**
 * Decodes a message; it is frozen except for its bytes.
 * @throws InvalidRequestError BUS_EVENT_ID_MISSING
 */
export function fromNats(raw: RawMessage): BusMessage {
  const { subject, data, headers: carried } = raw;
  const eventId = eventIdOf(raw);
  if (eventId === '') {
    throw new InvalidRequestError(
      'BUS_EVENT_ID_MISSING',
      `A message to ${subject} has no ${MESSAGE_ID} header, which deduplication requires.`,
      { subject },
    );
  }
  const own = Array.from(carried ?? [], ([name, values]) => [name, values.at(-1) ?? ''] as const);
  return Object.freeze({
    eventId,
    subject,
    payload: data,
    headers: Object.freeze(Object.fromEntries(own.filter(([name]) => !/^nats-/i.test(name)))),
  });
}
