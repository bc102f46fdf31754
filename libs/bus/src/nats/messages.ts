import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { InvalidRequestError } from '@writ/kernel';
import type { BusMessage } from '../bus.ts';

/** The header that JetStream knows a repeat by (HK-2). */
const MESSAGE_ID = 'Nats-Msg-Id';

/**
 * The headers of a message as NATS carries them.
 * @throws InvalidRequestError INVALID_HEADER for one that would be an order to the server
 */
export function toNatsHeaders({ eventId, headers: own }: BusMessage): MsgHdrs {
  const carried = headers();
  for (const [name, value] of Object.entries(own)) {
    if (/^nats-/i.test(name)) {
      throw new InvalidRequestError(
        'INVALID_HEADER',
        `The header ${name} must not begin with Nats-, which the server keeps for itself.`,
        { field: 'headers' },
      );
    }
    carried.set(name, value);
  }
  carried.set(MESSAGE_ID, eventId);
  return carried;
}

/**
 * A message from NATS; nobody can change it, but for its bytes.
 * @throws InvalidRequestError BUS_EVENT_ID_MISSING
 */
export function fromNats({
  subject,
  data,
  headers: carried,
}: Pick<Msg, 'subject' | 'data'> & { readonly headers?: MsgHdrs | undefined }): BusMessage {
  const eventId = carried?.get(MESSAGE_ID) ?? '';
  if (eventId === '') {
    throw new InvalidRequestError(
      'BUS_EVENT_ID_MISSING',
      `A message to ${subject} has no ${MESSAGE_ID}, so that a repeat of it would not be known.`,
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
