import { type ErrorKind, isClockError, isWritError } from '@writ/kernel';

/** The steps of each kind of order. Each step is idempotent, so that it can be repeated. */
export const ORDER_STEPS = {
  start_run: ['start'],
  wake_agent: ['signal'],
  spawn_child: ['acquire', 'open_tab', 'deliver'],
  end_child: ['freeze', 'cancel', 'close_tab', 'release'],
  end_run: ['end', 'freeze', 'cancel', 'settle', 'close_tabs', 'close_pool', 'finish'],
  halt: ['enforce', 'confirm', 'end', 'tell'],
  resume: ['unfreeze', 'lift', 'tell'],
} as const;

/** The kinds of order. */
export type OrderKind = keyof typeof ORDER_STEPS;

/**
 * The orders that enforce and lift halts. They belong to no run, are executed first and wait only for another order of
 * the same halt (SV-9).
 */
export const HALT_ORDERS = ['halt', 'resume'] as const satisfies readonly OrderKind[];

/** A kind of order of a halt. */
export type HaltOrderKind = (typeof HALT_ORDERS)[number];

/** The orders of a run except its start; they are executed before all starts (BD-5). */
export const RUNNING_ORDERS = [
  'end_run',
  'end_child',
  'wake_agent',
  'spawn_child',
] as const satisfies readonly OrderKind[];

/**
 * Orders that start something: they wait while their run or agent is halted. Orders that end something never wait
 * (SV-9).
 */
const DELAYED_BY_HALT: readonly OrderKind[] = ['start_run', 'wake_agent', 'spawn_child'];

/** The orders of a run. */
export const RUN_ORDERS: readonly OrderKind[] = ['start_run', ...RUNNING_ORDERS];

/** Whether an order belongs to a halt and not to a run. */
export function isHaltOrder(kind: OrderKind): kind is HaltOrderKind {
  return HALT_ORDERS.some((halt) => halt === kind);
}

/** Whether an order's steps wait while its run or agent is halted. */
export function isDelayedByHalt(kind: OrderKind): boolean {
  return DELAYED_BY_HALT.includes(kind);
}

/** Whether a stored text is a known kind of order. */
export function isOrderKind(kind: string): kind is OrderKind {
  return Object.hasOwn(ORDER_STEPS, kind);
}

/** Returns the remaining steps, beginning with the stored step; all steps for a new order or an unknown step. */
export function stepsFrom(kind: OrderKind, stored: string): readonly string[] {
  const steps: readonly string[] = ORDER_STEPS[kind];
  const index = steps.indexOf(stored);
  return index === -1 ? steps : steps.slice(index);
}

/** Which orders are due. */
export interface DueTerms {
  readonly now: Date;
  /**
   * Latest time for which a correct clock can have planned the next attempt. An order with a later time is due, because
   * a clock that was ahead recorded this time.
   */
  readonly latest: Date;
}

/** Returns the terms by which an order is due at `now`; `orderRetryMaxMs` is the maximum back-off (BD-3). */
export function dueTerms(
  { orderRetryMaxMs }: { readonly orderRetryMaxMs: number },
  now: Date,
): DueTerms {
  return { now, latest: new Date(now.getTime() + orderRetryMaxMs) };
}

/** Kinds of errors that a retry cannot resolve. */
const PERMANENT: readonly ErrorKind[] = [
  'invalid_argument',
  'permission_denied',
  'not_found',
  'already_exists',
  'failed_precondition',
  'unimplemented',
  'data_loss',
];
/** Errors of a busy or unreachable peer, which are transient. */
const TRANSIENT: readonly ErrorKind[] = [
  'unavailable',
  'resource_exhausted',
  'aborted',
  'deadline_exceeded',
  'cancelled',
];
/** Consecutive failures after which an unexpected error counts as permanent. */
const PERMANENT_AFTER = 8;

/** Whether a retry cannot succeed. */
export function isPermanent(error: unknown, attempts: number): boolean {
  if (!isWritError(error)) return attempts >= PERMANENT_AFTER;
  if (isClockError(error)) return false;
  if (PERMANENT.includes(error.kind)) return true;
  return !TRANSIENT.includes(error.kind) && attempts >= PERMANENT_AFTER;
}

/** The reason code of a failure, for rows and stop reasons; never its message. */
export function reasonOf(error: unknown): string {
  return isWritError(error) ? error.reason : 'INTERNAL';
}
