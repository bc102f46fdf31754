import { describe, expect, it } from 'vitest';
import { BudgetExhaustedError } from '../budgets/budget-exhausted-error.ts';
import {
  CancellationError,
  ConflictError,
  InvalidRequestError,
  isRetryable,
  isWritError,
  NotFoundError,
  UnavailableError,
  wrapUnknown,
} from './errors.ts';

describe('named errors', () => {
  it('carry kind, reason and read-only metadata (SYS-3)', () => {
    const error = new InvalidRequestError('INVALID_ID', 'run_id is malformed.', {
      field: 'run_id',
    });
    expect(error).toMatchObject({
      name: 'InvalidRequestError',
      kind: 'invalid_argument',
      reason: 'INVALID_ID',
      message: 'run_id is malformed.',
      metadata: { field: 'run_id' },
    });
    expect(Object.isFrozen(error.metadata)).toBe(true);
  });

  it('name the exhausted budget, the used amount and the limit (EM-2)', () => {
    const tokens = new BudgetExhaustedError({ dimension: 'tokens', used: 4200, limit: 4000 });
    expect(tokens.message).toBe('Token budget exceeded: 4200 > 4000');
    expect(tokens.reason).toBe('BUDGET_EXHAUSTED');
    expect(tokens.metadata).toEqual({ dimension: 'tokens', used: '4200', limit: '4000' });
    const cost = new BudgetExhaustedError({
      dimension: 'cost',
      used: 120_000_000n,
      limit: 100_000_000n,
    });
    expect(cost.message).toBe('Cost budget exceeded: 0.12 > 0.10');
  });

  it('accept a custom message (SB-2)', () => {
    const error = new BudgetExhaustedError({
      dimension: 'spawns',
      used: 50,
      limit: 50,
      message: 'The pool of 50 agents is full and NORMAL may not preempt.',
      metadata: { cap: 'max_agents' },
    });
    expect(error.message).toContain('may not preempt');
    expect(error.metadata).toMatchObject({ cap: 'max_agents', dimension: 'spawns' });
  });

  it('are retryable only when the same call may succeed', () => {
    expect(isRetryable(new UnavailableError('UNAVAILABLE', 'The meter did not respond.'))).toBe(
      true,
    );
    expect(isRetryable(new ConflictError('ABORTED', 'The row changed.'))).toBe(true);
    expect(isRetryable(new NotFoundError('RUN_NOT_FOUND', 'No such run.'))).toBe(false);
    expect(isRetryable(new Error('no'))).toBe(false);
  });

  it('hide the message of an unknown error, and keep the error as the cause (SYS-3)', () => {
    const secret = new Error('password=hunter2');
    const wrapped = wrapUnknown(secret);
    expect(wrapped).toMatchObject({ kind: 'internal', reason: 'INTERNAL', metadata: {} });
    expect(wrapped.message).not.toContain('hunter2');
    expect(wrapped.cause).toBe(secret);
    expect(isWritError(wrapUnknown('text'))).toBe(true);
  });

  it('are returned by wrapUnknown unchanged', () => {
    const error = new CancellationError('user stopped');
    expect(wrapUnknown(error)).toBe(error);
    expect(error).toMatchObject({ kind: 'cancelled', cancelReason: 'user stopped' });
  });
});
