import {
  BudgetExhaustedError,
  CancellationError,
  ConflictError,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  OverloadedError,
  PermissionDeniedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { type Reaction, reactTo } from './reaction.ts';

const stop = (stopReason: string): Reaction => ({ kind: 'stop', stopReason });

const CASES: readonly (readonly [WritError, Reaction])[] = [
  [new UnavailableError('UNAVAILABLE', ''), { kind: 'retry' }],
  [new ConflictError('STORE_CONFLICT', ''), { kind: 'retry' }],
  [new DeadlineError('DEADLINE_EXCEEDED', ''), { kind: 'retry' }],
  [new CancellationError('server disconnected'), { kind: 'retry' }],
  [new OverloadedError('TOOL_QUEUE_FULL', ''), { kind: 'retry' }],
  [new OverloadedError('MESSAGE_TOO_LARGE', ''), stop('error:message_too_large')],
  [new PreconditionError('STALE_EPOCH', ''), { kind: 'abandon' }],
  [new PreconditionError('HALTED', ''), { kind: 'park' }],
  [new PreconditionError('FROZEN', ''), { kind: 'park' }],
  [new PermissionDeniedError('TENANT_NOT_SERVED', ''), { kind: 'park' }],
  [new PreconditionError('SLOT_GRANT_EXPIRED', ''), { kind: 'renew_slot' }],
  [new PreconditionError('RUN_ENDED', ''), { kind: 'ended', stopReason: undefined }],
  [
    new PreconditionError('RUN_ENDED', '', { stop_reason: 'max_seconds' }),
    { kind: 'ended', stopReason: 'max_seconds' },
  ],
  [new UnauthenticatedError('TOKEN_EXPIRED', ''), { kind: 'refresh_tokens' }],
  [new UnauthenticatedError('TOKEN_MISSING', ''), { kind: 'refresh_tokens' }],
  [new UnauthenticatedError('TOKEN_EXPIRED', '', { token: 'service' }), { kind: 'retry' }],
  [
    new UnauthenticatedError('TOKEN_INVALID', '', { check: 'signature', token: 'agent' }),
    { kind: 'refresh_tokens' },
  ],
  [
    new UnauthenticatedError('TOKEN_INVALID', '', { check: 'kid', token: 'agent' }),
    { kind: 'retry', renews: 'tokens' },
  ],
  [
    new UnauthenticatedError('TOKEN_INVALID', '', { check: 'kid', token: 'slot_grant' }),
    { kind: 'retry' },
  ],
  [
    new PermissionDeniedError('WRIT_INVALID', '', { check: 'kid', token: 'writ' }),
    { kind: 'retry', renews: 'writ' },
  ],
  [
    new InvalidRequestError('RECEIPT_INVALID', '', { check: 'kid', token: 'receipt' }),
    { kind: 'await_receipt_key' },
  ],
  [
    new InvalidRequestError('RECEIPT_INVALID', '', { check: 'signature', token: 'receipt' }),
    stop('error:receipt_invalid'),
  ],
  [new UnauthenticatedError('TOKEN_INVALID', '', { check: 'iat' }), { kind: 'retry' }],
  [new UnauthenticatedError('TOKEN_INVALID', '', { check: 'nbf' }), { kind: 'retry' }],
  [
    new UnauthenticatedError('TOKEN_INVALID', '', { check: 'iat', token: 'agent' }),
    { kind: 'retry', renews: 'tokens' },
  ],
  [
    new PermissionDeniedError('WRIT_INVALID', '', { check: 'iat' }),
    { kind: 'retry', renews: 'writ' },
  ],
  [new PermissionDeniedError('WRIT_INVALID', '', { check: 'aud' }), stop('error:writ_invalid')],
  [new PermissionDeniedError('WRIT_EXPIRED', ''), { kind: 'renew_writ' }],
  [new PermissionDeniedError('WRIT_MISMATCH', ''), stop('error:writ_mismatch')],
  [
    new BudgetExhaustedError({ dimension: 'cost', used: 2n, limit: 1n }),
    stop('budget_exhausted:cost'),
  ],
  [new OverloadedError('BUDGET_EXHAUSTED', ''), stop('error:budget_exhausted')],
  [new DeadlineError('LLM_TIMEOUT', '', { stop_reason: 'llm_timeout' }), stop('llm_timeout')],
  [
    new PreconditionError('PROVIDER_ERROR', '', { stop_reason: 'provider_error:500' }),
    stop('provider_error:500'),
  ],
  [new CancellationError('frozen', { stop_reason: 'cancelled' }), { kind: 'retry' }],
  [new InvalidRequestError('CALL_ID_REUSED', ''), { kind: 'diverged' }],
  [new InternalError('INTERNAL', '', { stop_reason: 'no such reason' }), stop('error:internal')],
];

describe('an error of a peer', () => {
  it('determines the reaction by its reason and kind (SYS-3, SYS-4, SV-6, BD-3)', () => {
    for (const [error, reaction] of CASES) {
      expect({ reason: error.reason, ...reactTo(error) }).toEqual({
        reason: error.reason,
        ...reaction,
      });
    }
  });
});
