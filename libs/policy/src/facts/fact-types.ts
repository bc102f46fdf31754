import type { JsonValue } from '@writ/kernel';
import type { FactValue } from '../types.ts';

/**
 * States of a call that facts depend on, in ascending precedence: approved (`pending`), voided
 * without execution (`void`), outcome unknown (`unknown`), refused by the gateway, failed inside
 * the tool, succeeded.
 */
export const CALL_STATES = [
  'pending',
  'void',
  'unknown',
  'refused',
  'failed',
  'succeeded',
] as const;

/** One of {@link CALL_STATES}. */
export type CallState = (typeof CALL_STATES)[number];

/** Effect of one call on the facts of its run. Plain JSON; can be stored in a row of its own. */
export interface CallEffect {
  readonly callId: string;
  readonly tool: string;
  readonly state: CallState;
  /** The amount that the approved action adds to each fact of kind cap, by name of the fact. */
  readonly counted: Readonly<Record<string, number>>;
  /** Values set by the receipt, by fact. */
  readonly settled: Readonly<Record<string, FactValue>>;
  /**
   * Names of the facts whose update could not be computed from the receipt. A cap then keeps the count of the approval,
   * and a gate keeps its value.
   */
  readonly problems: readonly string[];
}

/**
 * The facts of one run as plain JSON (SV-3): the initial values, and the effects of the calls in the order in which
 * each call was first recorded, by its approval or by a receipt without one. Fact values are always computed from
 * these, so receipts may be delivered repeatedly and in any order.
 */
export interface Facts {
  readonly base: Readonly<Record<string, FactValue>>;
  readonly calls: readonly CallEffect[];
}

/** The fields of a receipt that facts use. */
export interface FactReceipt {
  readonly callId: string;
  readonly tool: string;
  readonly status: 'succeeded' | 'failed' | 'refused' | 'unknown';
  /** The declared result fields by dotted path; fields that the result lacks are absent. */
  readonly fields?: Readonly<Record<string, JsonValue>> | undefined;
}
