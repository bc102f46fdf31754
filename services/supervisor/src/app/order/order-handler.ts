import { NotFoundError } from '@writ/kernel';
import type { OrderRow } from '../../store/orders.ts';
import type { RunRow } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** An order that is being driven. */
export interface DrivenOrder {
  readonly order: OrderRow;
  /** The run as it stood before the step. */
  readonly run: RunRow;
  /** What a step learned that may not be stored, for the next one; gone after a crash. */
  readonly memo: Map<string, string>;
}

/** What the steps of a halt's order get: it belongs to no run. */
export type DrivenHalt = Pick<DrivenOrder, 'order'>;

/** How the orders of a halt are carried out; they are never given up. */
export interface HaltOrderHandler {
  readonly steps: Readonly<Record<string, (driven: DrivenHalt) => Promise<StepDone>>>;
}

/** What a step changed, to be committed together with the order's own progress. */
export interface StepDone {
  /** The steps that are left are not needed any more. */
  readonly over?: boolean;
  readonly commit?: (trx: SupervisorTransaction, at: Date) => Promise<void>;
}

/** One step; it may run again after a crash, so everything it does is idempotent. */
export type OrderStep = (driven: DrivenOrder) => Promise<StepDone>;

/** How the orders of one kind are carried out. */
export interface OrderHandler {
  readonly steps: Readonly<Record<string, OrderStep>>;
  /**
   * Gives up on an order that will never succeed. Left out: it is tried again for ever, since there
   * is nothing better to do.
   */
  readonly giveUp?: (
    trx: SupervisorTransaction,
    driven: DrivenOrder,
    reason: string,
    at: Date,
  ) => Promise<void>;
}

/** The result of a call to a peer, undefined when the peer does not know its subject and has nothing to end. */
export async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
