import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { SettleRequest } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { type ReservationSchema, ReservationState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { InternalError, InvalidRequestError } from '@writ/kernel';
import { type EntryState, heldAmount } from '../domain/ledger/entry.ts';
import type { Spending } from '../domain/ledger/spending.ts';
import type { StoredEntry } from '../store/entries.ts';

const STATES: Readonly<Record<EntryState, ReservationState>> = {
  reserved: ReservationState.RESERVED,
  sent: ReservationState.SENT,
  settled: ReservationState.SETTLED,
  released: ReservationState.RELEASED,
};

/** Contract names, without the suffix `_tokens`, of the token fields that have another name in the code. */
const FIELDS: Readonly<Record<string, string>> = {
  cachedInput: 'cached_input',
  cacheWrite: 'cache_write_input',
};

/** Maximum token count, the same as for token fields of other requests. */
const MAX_TOKENS = 1_000_000_000_000n;

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

/**
 * Reads the spending of a SettleRequest.
 * @throws InvalidRequestError INVALID_USAGE
 */
export function readSettledSpending({
  usage,
  costNanoUsd,
  turns,
  estimated,
}: SettleRequest): Spending {
  const {
    inputTokens: input = 0n,
    cachedInputTokens: cachedInput = 0n,
    cacheWriteInputTokens: cacheWrite = 0n,
    outputTokens: output = 0n,
    reasoningTokens: reasoning = 0n,
  } = usage ?? {};
  const tokens = { input, cachedInput, cacheWrite, output, reasoning };
  for (const [field, count] of Object.entries(tokens)) {
    if (count >= 0n && count <= MAX_TOKENS) continue;
    throw new InvalidRequestError(
      'INVALID_USAGE',
      `usage.${FIELDS[field] ?? field}_tokens must be from 0 to ${MAX_TOKENS}.`,
      { field: 'usage' },
    );
  }
  if (cachedInput + cacheWrite > input || reasoning > output) {
    throw new InvalidRequestError(
      'INVALID_USAGE',
      'usage.cached_input_tokens and cache_write_input_tokens together must not exceed input_tokens, and usage.reasoning_tokens must not exceed output_tokens.',
      { field: 'usage' },
    );
  }
  return { usage: tokens, cost: costNanoUsd, turns, estimated, failed: false };
}
