import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type ReservationSchema, ReservationState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { InternalError } from '@writ/kernel';
import { type EntryState, heldAmount } from '../../domain/ledger/entry.ts';
import type { StoredEntry } from '../../store/entries.ts';

const STATES: Readonly<Record<EntryState, ReservationState>> = {
  reserved: ReservationState.RESERVED,
  sent: ReservationState.SENT,
  settled: ReservationState.SETTLED,
  released: ReservationState.RELEASED,
};

/** Converts an entry to a Reservation message. */
export function reservationMessage(
  stored: StoredEntry | undefined,
): MessageInitShape<typeof ReservationSchema> {
  if (stored === undefined) {
    throw new InternalError('ENTRY_MISSING', 'The booked reservation has no ledger entry.');
  }
  const { callId, entry, expiresAt } = stored;
  const { tokens, cost, turns } = heldAmount(entry.held);
  return {
    callId,
    state: STATES[entry.state],
    tokens,
    costNanoUsd: cost,
    turns,
    ...(expiresAt && { expireTime: timestampFromDate(expiresAt) }),
    exceeded: entry.exceeded,
  };
}
