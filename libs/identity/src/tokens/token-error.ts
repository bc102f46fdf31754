import { UnauthenticatedError } from '@writ/kernel/portable';
import type { TokenKind } from './token-kinds.ts';

/** The error for an invalid token; `check` names the failed check, such as `aud` or `signature`. */
export function tokenInvalid(kind: TokenKind, check: string, why: string): UnauthenticatedError {
  return new UnauthenticatedError(
    'TOKEN_INVALID',
    `The ${displayName(kind)} is not valid: ${why}.`,
    {
      token: kind,
      check,
    },
  );
}

/** The error for an expired token. */
export function tokenExpired(kind: TokenKind, expireTime: Date): UnauthenticatedError {
  return new UnauthenticatedError(
    'TOKEN_EXPIRED',
    `The ${displayName(kind)} expired at ${expireTime.toISOString()}.`,
    { token: kind, expire_time: expireTime.toISOString() },
  );
}

function displayName(kind: TokenKind): string {
  switch (kind) {
    case 'service':
    case 'agent':
      return `${kind} token`;
    case 'slot_grant':
      return 'slot grant';
    case 'run_token':
      return 'run token';
    case 'writ':
    case 'receipt':
    case 'checkpoint':
      return kind;
  }
}
