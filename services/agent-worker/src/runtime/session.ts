import {
  CancellationError,
  CancellationToken,
  type Clock,
  DeadlineError,
  isWritError,
  RunMeta,
} from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import { type AgentEvent, type AgentStatus, reduceAgent } from '../domain/agent/state.ts';
import { restoreSupervision } from '../domain/agent/supervision.ts';
import type { ChatTurn } from '../domain/calls/model-call.ts';
import { type AgentChanges, type AgentRow, statusOf } from '../store/agents.ts';
import { keyOf } from '../store/keys.ts';
import { type LeasedAgent, saveLeased } from '../store/leases.ts';
import type { WorkerStore, WorkerTransaction } from '../store/worker-store.ts';
import { AlreadyEnded, Drained, LeaseLost, Parked, Stopped, type Unwinding } from './unwinding.ts';

/** Why a session comes to its end before the agent does. */
export type Interruption =
  /** The agent was cancelled: its rows are terminal already. */
  | 'cancelled'
  /** It may not act until its halt is lifted. */
  | 'halted'
  /** Another worker has the lease. */
  | 'lost'
  /** This worker stops. */
  | 'drained';

/** What the session shall know of a run. */
export interface Conversation {
  /** So many items of the agent's checkpoints come first. */
  readonly items: number;
  readonly turns: readonly ChatTurn[];
}

/** What a session works with. */
export interface SessionParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly leaseTtlMs: number;
}

/** One lease of one agent: who it is, whether it may go on, and its fenced writes (RT-2). */
export class Session {
  readonly row: AgentRow;
  readonly lease: LeasedAgent;
  readonly manifest: AgentManifest;
  readonly meta: RunMeta;
  /** Trace context of this lease's span; kept, so that the next lease links to it (SYS-1). */
  traceparent: string | undefined;
  /** The approved answer that ended the agent. */
  answer: string | undefined;
  /** The conversation that the session shall remember if the agent ends with an approved answer. */
  conversation: Conversation | undefined;
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
    this.#parts = parts;
    this.#status = statusOf(row);
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

  /** Aborts calls under way. */
  get signal(): AbortSignal {
    return this.#token.toAbortSignal();
  }

  /** Aborts waits, also those between two calls. */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  /** Where the agent stands, also between two commits. */
  get status(): AgentStatus {
    return this.#status;
  }

  /** Notes what happens between two commits. */
  note(event: AgentEvent): void {
    this.#status = reduceAgent(this.#status, event);
  }

  /** Has the agent stop at its next operation; with `abort`, also what is under way. */
  interrupt(why: Interruption, abort: boolean): void {
    this.#interruption ??= why;
    this.#interrupted.abort();
    if (abort) this.#token.cancel(why);
  }

  /**
   * Has the agent start nothing new, while what is under way goes on; undefined lets it go on. How it
   * ended can be told in any case (SB-4).
   */
  block(blocked: Unwinding | undefined): void {
    this.#blocked = blocked;
  }

  /**
   * Called before every effect (SUP-5). Pre-flight order: interrupted or cancelled, then out of time,
   * then without a slot.
   * @throws Unwinding
   */
  check(): void {
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
    if (this.#blocked !== undefined) throw this.#blocked;
  }

  /**
   * Called before what may be done out of time, too.
   * @throws Unwinding
   */
  checkInterruption(): void {
    if (this.#interruption !== undefined) throw this.#unwinding(this.#interruption);
  }

  /**
   * Writes columns of the agent, and whatever `work` writes, in one transaction under the lease,
   * which it prolongs. Writes of one session come one after the other.
   * @throws LeaseLost when the lease is over: nothing was written (RT-2)
   */
  async write(
    changes: AgentChanges,
    work: (trx: WorkerTransaction, at: Date) => Promise<void>,
  ): Promise<void> {
    const turn = this.#lastWrite.then(() => this.#write(changes, work));
    this.#lastWrite = turn.catch(() => undefined);
    await turn;
  }

  async #write(
    changes: AgentChanges,
    work: (trx: WorkerTransaction, at: Date) => Promise<void>,
  ): Promise<void> {
    const { store, clock, leaseTtlMs } = this.#parts;
    const at = clock.now();
    const lease = {
      lease_expires_at: new Date(at.getTime() + leaseTtlMs),
      ...(this.traceparent !== undefined && { last_traceparent: this.traceparent }),
    };
    try {
      await store.transaction(async (trx) => {
        await saveLeased(trx, this.lease, { ...lease, ...changes });
        await work(trx, at);
      });
    } catch (error) {
      if (isWritError(error) && error.reason === 'STALE_EPOCH') throw new LeaseLost(error.message);
      throw error;
    }
  }

  #unwinding(why: Interruption): Unwinding {
    switch (why) {
      case 'cancelled':
        return new AlreadyEnded(undefined);
      case 'halted':
        return new Parked('The agent is halted.');
      case 'lost':
        return new LeaseLost('The lease is over.');
      case 'drained':
        return new Drained('The worker stops.');
    }
  }
}
