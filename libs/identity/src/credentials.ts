import { InvalidRequestError, UnauthenticatedError } from '@writ/kernel';
import { type GateCall, METADATA } from '@writ/rpc';
import { rpcKey } from './caller-table.ts';

const MAX_EPOCH = 2n ** 63n - 1n;

/**
 * The token of `authorization: Bearer <token>`.
 * @throws UnauthenticatedError TOKEN_MISSING saying what to send
 */
export function bearer(call: GateCall, what: string): string {
  const [scheme = '', token = '', ...rest] = (call.header(METADATA.authorization) ?? '').split(' ');
  if (scheme.toLowerCase() === 'bearer' && token !== '' && rest.length === 0) return token;
  throw missing(call, METADATA.authorization, `\`Bearer\` and ${what}`);
}

/**
 * A header that must be there.
 * @throws UnauthenticatedError TOKEN_MISSING naming it
 */
export function requireHeader(call: GateCall, name: string, what: string): string {
  const value = call.header(name);
  if (value !== undefined && value !== '') return value;
  throw missing(call, name, what);
}

/**
 * The worker's lease epoch of the metadata `writ-epoch`, a decimal number (RT-2).
 * @throws InvalidRequestError EPOCH_MALFORMED, and EPOCH_MISSING when `required`
 */
export function readEpoch(call: GateCall, required: boolean): bigint | undefined {
  const text = call.header(METADATA.epoch);
  if (text === undefined || text === '') {
    if (!required) return undefined;
    throw epochError('EPOCH_MISSING', `${rpcKey(call.method)} needs the lease epoch in`);
  }
  const epoch = /^(0|[1-9]\d{0,18})$/.test(text) ? BigInt(text) : MAX_EPOCH + 1n;
  if (epoch <= MAX_EPOCH) return epoch;
  throw epochError('EPOCH_MALFORMED', 'A decimal number from 0 is needed in');
}

function missing(call: GateCall, name: string, what: string): UnauthenticatedError {
  return new UnauthenticatedError(
    'TOKEN_MISSING',
    `${rpcKey(call.method)} needs ${what} in the metadata ${name}.`,
    { metadata_key: name },
  );
}

function epochError(
  reason: 'EPOCH_MISSING' | 'EPOCH_MALFORMED',
  sentence: string,
): InvalidRequestError {
  return new InvalidRequestError(reason, `${sentence} the metadata ${METADATA.epoch}.`, {
    field: METADATA.epoch,
  });
}
