import {
  CancellationError,
  CancellationToken,
  type Clock,
  DeadlineError,
  isWritError,
  omitUndefined,
  RunMeta,
} from '@writ/kernel';
import type { TransactionOptions } from '@writ/store';
import type { Delivery } from '../../domain/agent/delivery.ts';
import type { FirstReads } from '../../domain/agent/first-reads.ts';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { SlotGrant } from '../../domain/agent/slot.ts';
import { type AgentEvent, type AgentStatus, reduceAgent } from '../../domain/agent/state.ts';
import { restoreSupervision } from '../../domain/agent/supervision.ts';
import { readWaits } from '../../domain/agent/waits.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { type AgentChanges, type AgentRow, statusOf } from '../../store/agents.ts';
import { keyOf } from '../../store/keys.ts';
import { type LeasedAgent, saveLeased } from '../../store/leases.ts';
import type { WorkerStore, WorkerTransaction } from '../../store/worker-store.ts';
import { AlreadyEnded, Drained, LeaseLost, Parked, Stopped, type Unwinding } from '../unwinding.ts';

/** Why a session ends before its agent. */
export type Interruption =
  /** The agent was cancelled; its rows are already terminal. */
  | 'cancelled'
  /** The agent is halted. */
  | 'halted'
  /** Another worker has claimed the agent, or the agent was ended in the store. */
  | 'lost'
  /** This worker is shutting down. */
  | 'drained';

/** The turns of a run that are stored in the history of its session. */
export interface Conversation {
  /** Number of items in the agent's checkpoints that precede the turns. */
  readonly items: number;
  readonly turns: readonly ChatTurn[];
}

/** Dependencies of {@link LeaseSession}. */
export interface SessionParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  /** Returns the time for values that other workers compare with their clocks, such as lease expiries (BD-3). */
  readonly sharedNow: () => Date;
  readonly leaseTtlMs: number;
  /** The delivery, if this lease was stored with it. */
  readonly delivery?: Delivered | undefined;
}

/** The parts of a delivery that the first lease of the agent uses. */
export type Delivered = Pick<Delivery, 'slotGrant' | 'message'>;

/** One lease of one agent: its identity, its pre-flight checks and its fenced writes (RT-2). */
export class LeaseSession {
  readonly row: AgentRow;
  readonly lease: LeasedAgent;
  readonly manifest: AgentManifest;
  readonly meta: RunMeta;
  /** The slot grant with which the lease starts; default: none. */
  readonly slotGrant: SlotGrant | undefined;
  /** The message of the delivery, the only one in the inbox; undefined when the inbox must be read. */
  readonly message: Message | undefined;
  /** Trace context of this lease's span; stored, so that the next lease links to it (SYS-1). */
  traceparent: string | undefined;
  /** The approved answer that ended the agent. */
  answer: string | undefined;
  /** Composes the partial answer; returns an empty text when there is none. */
  draft: (() => string) | undefined;
  /** The signals that the agent waited for when it was last suspended, except those that it has received since. */
  readonly waits: Map<string, Date>;
  /** The conversation to store if the agent ends with an approved answer. */
  conversation: Conversation | undefined;
  /**
   * Whether the previous lease was held by another process that did not release it. That process may still run the
   * agent, and services do not reject its calls yet. While true, a release keeps the previous owner in the row, so that
   * the next lease is a takeover, too (RT-2).
   */
  mustFence: boolean;
  /** Commits the agent's pending changes. */
  flush: () => Promise<void> = async () => undefined;
  #firstReads: FirstReads;
  readonly #parts: SessionParts;
  readonly #token = new CancellationToken();
  readonly #interrupted = new AbortController();
  #interruption: Interruption | undefined;
  #blocked: Unwinding | undefined;
  #status: AgentStatus;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(row: AgentRow, parts: SessionParts) {
    this.row = row;
    this.lease = { ...keyOf(row), epoch: row.epoch };
    this.manifest = JSON.parse(row.manifest) as AgentManifest;
    this.slotGrant = parts.delivery?.slotGrant;
    this.message = parts.delivery?.message;
    // The row still contains the owner before the claim; there is no previous owner at the first lease.
    this.mustFence = row.epoch > 1n && row.lease_owner !== null;
    this.#firstReads = JSON.parse(row.first_reads ?? '{}') as FirstReads;
    this.#parts = parts;
    this.#status = statusOf(row);
    this.waits = new Map(readWaits(row.waiting_since));
    this.meta = new RunMeta({
      identity: 'agent-worker',
      tenantId: row.tenant,
      runId: row.run_id,
      agent: { name: row.name, instance: row.instance },
      epoch: Number(row.epoch),
      traceparent: row.traceparent,
      deadline: row.deadline_at ?? undefined,
      cancellation: this.#token,
      supervision: restoreSupervision(row.supervision),
      clock: parts.clock,
    });
  }

  /** Aborts in-flight calls. */
  get signal(): AbortSignal {
    return this.#token.toAbortSignal();
  }

  /** Aborts waits, including those between two calls. */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  /** Whether the agent was cancelled in this process, so that its rows are already terminal. */
  get isCancelled(): boolean {
    return this.#interruption === 'cancelled';
  }

  /** The agent's current status, including uncommitted changes. */
  get status(): AgentStatus {
    return this.#status;
  }

  /**
   * Returns a value that was read at the delivery. Returns it only once and only before the first commit of the
   * journal; otherwise returns undefined, and the agent must read the value itself. A replay gets the same value, from
   * here or from the journal (RT-1).
   */
  takeFirst<K extends keyof FirstReads>(what: K): FirstReads[K] {
    const { [what]: value, ...rest } = this.#firstReads;
    this.#firstReads = rest;
    return value;
  }

  /** Drops the first reads that the agent has not used; the next commit must delete the stored values. */
  dropFirst(): void {
    this.#firstReads = {};
  }

  /** Applies an event to the status of the agent without a commit. */
  note(event: AgentEvent): void {
    this.#status = reduceAgent(this.#status, event);
  }

  /** Stops the agent at its next operation; with `abort`, in-flight calls are aborted, too. */
  interrupt(why: Interruption, abort: boolean): void {
    this.#interruption ??= why;
    this.#interrupted.abort();
    if (abort) this.#token.cancel(why);
  }

  /**
   * Blocks new operations while in-flight calls continue; undefined unblocks them. Does not block
   * the report of the outcome (SB-4).
   */
  block(blocked: Unwinding | undefined): void {
    this.#blocked = blocked;
  }

  /**
   * Must be called before every effect (SUP-5). Checks for interruption or cancellation first, then
   * the deadline, then the slot.
   * @param isReplay whether the next effect is already recorded, so that it requires no slot
   * @throws Unwinding
   */
  check(isReplay = false): void {
    this.checkInterruption();
    try {
      this.meta.check();
    } catch (error) {
      if (error instanceof CancellationError) throw this.#unwinding('cancelled');
      if (error instanceof DeadlineError) {
        throw new Stopped({ stopReason: 'deadline', phase: 'worker', detail: error.message });
      }
      throw error;
    }
    if (this.#blocked !== undefined && !isReplay) throw this.#blocked;
  }

  /**
   * Must be called before effects that are permitted after the deadline.
   * @throws Unwinding
   */
  checkInterruption(): void {
    if (this.#interruption !== undefined) throw this.#unwinding(this.#interruption);
  }

  /**
   * Updates the agent's row and runs `work` in one transaction under the lease, and extends the lease.
   * Writes of one session are serialized.
   * @param touched transaction options for the rows that `work` reads or writes and that do not belong to the run
   * @throws LeaseLost when the lease is lost; nothing was written (RT-2)
   */
  async write(
    changes: AgentChanges,
    work: (trx: WorkerTransaction, at: Date) => Promise<void>,
    touched: Pick<TransactionOptions, 'tenant' | 'resource'> = {},
  ): Promise<void> {
    const turn = this.#lastWrite.then(() => this.#write(changes, work, touched));
    this.#lastWrite = turn.catch(() => undefined);
    await turn;
  }

  async #write(
    changes: AgentChanges,
    work: (trx: WorkerTransaction, at: Date) => Promise<void>,
    touched: Pick<TransactionOptions, 'tenant' | 'resource'>,
  ): Promise<void> {
    const { store, sharedNow, leaseTtlMs } = this.#parts;
    const at = sharedNow();
    const lease = {
      lease_expires_at: new Date(at.getTime() + leaseTtlMs),
      ...omitUndefined({ last_traceparent: this.traceparent }),
    };
    try {
      await store.transaction(
        async (trx) => {
          await saveLeased(trx, this.lease, { ...lease, ...changes, ...this.#keptOwner(changes) });
          await work(trx, at);
        },
        { run: this.lease, ...touched },
      );
    } catch (error) {
      if (isWritError(error) && error.reason === 'STALE_EPOCH') throw new LeaseLost(error.message);
      throw error;
    }
  }

  #keptOwner(changes: AgentChanges): AgentChanges {
    const isReleased = changes.lease_owner === null && changes.ended_at == null;
    return isReleased && this.mustFence ? { lease_owner: this.row.lease_owner } : {};
  }

  #unwinding(why: Interruption): Unwinding {
    switch (why) {
      case 'cancelled':
        return new AlreadyEnded(undefined);
      case 'halted':
        return new Parked('The agent is halted.');
      case 'lost':
        return new LeaseLost('The lease is lost.');
      case 'drained':
        return new Drained('The worker is shutting down.');
    }
  }
}
