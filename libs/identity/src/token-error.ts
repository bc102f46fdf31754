import { UnauthenticatedError } from '@writ/kernel';
import type { TokenKind } from './token-kinds.ts';

/** A token that does not count; `check` names what failed, such as `aud` or `signature`. */
export function tokenInvalid(kind: TokenKind, check: string, why: string): UnauthenticatedError {
  return new UnauthenticatedError('TOKEN_INVALID', `The ${shown(kind)} is not valid: ${why}.`, {
    token: kind,
    check,
  });
}

/** A token whose time is over. */
export function tokenExpired(kind: TokenKind, expireTime: Date): UnauthenticatedError {
  return new UnauthenticatedError(
    'TOKEN_EXPIRED',
    `The ${shown(kind)} expired at ${expireTime.toISOString()}.`,
    { token: kind, expire_time: expireTime.toISOString() },
  );
}

function shown(kind: TokenKind): string {
  switch (kind) {
    case 'service':
    case 'agent':
      return `${kind} token`;
    case 'slot_grant':
      return 'slot grant';
    case 'writ':
    case 'receipt':
    case 'checkpoint':
      return kind;
  }
}
