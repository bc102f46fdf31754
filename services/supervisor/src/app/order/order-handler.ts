import type { CarriedEvent } from '@writ/contracts/writ/timeline/v1/carried_event_pb';
import { NotFoundError } from '@writ/kernel';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import type { RunRow } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** Values that the steps of an order pass to later steps in memory. */
export interface Memo {
  /** The slot grant of a child. */
  slotGrant?: string;
  /** Events of the ended agents, until they are on the timeline. */
  readonly events: CarriedEvent[];
}

/** An order in execution. */
export interface DrivenOrder {
  readonly order: OrderRow;
  /** The run before the step. */
  readonly run: RunRow;
  /** Values that one step passes to the next and that must not be stored; lost in a crash and in a failure. */
  readonly memo: Memo;
}

/** The input of a halt order's steps: a halt order belongs to no run. */
export type DrivenHalt = Pick<DrivenOrder, 'order'>;

/** Executes the orders of a halt, which are retried until they succeed. */
export interface HaltOrderHandler {
  readonly steps: Readonly<Record<string, (driven: DrivenHalt) => Promise<StepDone>>>;
}

/** What a step changed, committed together with the progress of the order. */
export interface StepDone {
  /** Whether the remaining steps are unnecessary. */
  readonly over?: boolean;
  /** Whether the step changed no rows of the supervisor, so that the next step follows without a commit. */
  readonly unchanged?: boolean;
  /** Longest wait for another transaction that shares the commit, ms; default 0, because clients await the commit. */
  readonly commitDelayMs?: number;
  readonly commit?: (trx: SupervisorTransaction, at: Date) => Promise<void>;
}

/** One step. It is idempotent, because it may run again after a crash. */
export type OrderStep = (driven: DrivenOrder) => Promise<StepDone>;

/** Why an order can never succeed. */
export interface OrderFailure {
  /** The reason code. */
  readonly reason: string;
  /** One sentence for people; undefined if the error is not a service error. */
  readonly detail: string | undefined;
}

/** Executes the orders of one kind. */
export interface OrderHandler {
  readonly steps: Readonly<Record<string, OrderStep>>;
  /** Ends an order that can never succeed. When omitted, the order is retried forever. */
  readonly giveUp?: (
    trx: SupervisorTransaction,
    driven: DrivenOrder,
    failure: OrderFailure,
    at: Date,
  ) => Promise<void>;
}

/** Returns the result of a call to a peer; undefined if the peer returns NOT_FOUND and so has nothing to end. */
export async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
