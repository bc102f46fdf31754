import { InvalidRequestError, UnauthenticatedError } from '@writ/kernel';
import { type GateCall, METADATA } from '@writ/rpc';
import { rpcKey } from '../services/caller-table.ts';

const MAX_EPOCH = 2n ** 63n - 1n;

/**
 * Returns the token of `authorization: Bearer <token>`.
 * @throws UnauthenticatedError TOKEN_MISSING naming the required credential
 */
export function bearer(call: GateCall, what: string): string {
  const [scheme = '', token = '', ...rest] = (call.header(METADATA.authorization) ?? '').split(' ');
  if (scheme.toLowerCase() === 'bearer' && token !== '' && rest.length === 0) return token;
  throw missing(call, METADATA.authorization, `\`Bearer\` and ${what}`);
}

/**
 * Returns a required header.
 * @throws UnauthenticatedError TOKEN_MISSING naming the header
 */
export function requireHeader(call: GateCall, name: string, what: string): string {
  const value = call.header(name);
  if (value !== undefined && value !== '') return value;
  throw missing(call, name, what);
}

/**
 * Reads the worker's lease epoch from the metadata key `writ-epoch`, a decimal number (RT-2).
 * @throws InvalidRequestError EPOCH_MALFORMED, and EPOCH_MISSING when `required`
 */
export function readEpoch(call: GateCall, required: boolean): bigint | undefined {
  const text = call.header(METADATA.epoch);
  if (text === undefined || text === '') {
    if (!required) return undefined;
    throw epochError('EPOCH_MISSING', `${rpcKey(call.method)} requires the lease epoch in`);
  }
  const epoch = /^(0|[1-9]\d{0,18})$/.test(text) ? BigInt(text) : MAX_EPOCH + 1n;
  if (epoch <= MAX_EPOCH) return epoch;
  throw epochError('EPOCH_MALFORMED', 'A non-negative decimal number is required in');
}

function missing(call: GateCall, name: string, what: string): UnauthenticatedError {
  return new UnauthenticatedError(
    'TOKEN_MISSING',
    `${rpcKey(call.method)} requires ${what} in the metadata key ${name}.`,
    { metadata_key: name },
  );
}

function epochError(
  reason: 'EPOCH_MISSING' | 'EPOCH_MALFORMED',
  sentence: string,
): InvalidRequestError {
  return new InvalidRequestError(reason, `${sentence} the metadata key ${METADATA.epoch}.`, {
    field: METADATA.epoch,
  });
}
