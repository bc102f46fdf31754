import type { JsonValue } from '@writ/kernel';
import type { FactValue } from './types.ts';

/**
 * What is known of a call that facts depend on, each stage outweighing those before it: approved
 * and no more (`pending`), burnt unexecuted (`void`), perhaps executed (`unknown`), refused by the
 * gateway, failed inside the tool, done.
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

/** What one call does to the facts of its run. Plain JSON; may be stored as a row of its own. */
export interface CallEffect {
  readonly callId: string;
  readonly tool: string;
  readonly state: CallState;
  /** What the approved action counts for, by cap. */
  readonly counted: Readonly<Record<string, number>>;
  /** What the receipt made of it, by fact; only where one said so. */
  readonly settled: Readonly<Record<string, FactValue>>;
  /** Facts whose update could not be computed from the receipt, so that the cautious value stands. */
  readonly problems: readonly string[];
}

/**
 * The facts of one run as plain JSON (SV-3): where they began, and the effect of each call in the
 * order of approval. Values are always computed from these, so it does not matter in which order
 * or how often receipts come.
 */
export interface Facts {
  readonly base: Readonly<Record<string, FactValue>>;
  readonly calls: readonly CallEffect[];
}

/** A receipt as far as facts are concerned. */
export interface FactReceipt {
  readonly callId: string;
  readonly tool: string;
  readonly status: 'succeeded' | 'failed' | 'refused' | 'unknown';
  /** The declared result fields by dotted path; what the result did not have is left out. */
  readonly fields?: Readonly<Record<string, JsonValue>> | undefined;
}
