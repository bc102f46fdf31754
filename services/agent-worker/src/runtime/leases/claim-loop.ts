import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AgentKey,
  agentKeyText,
  type Clock,
  isTerminal,
  type RunKey,
  settlesWithin,
  WakeableLoop,
} from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentStatus } from '../../domain/agent/state.ts';
import { claimAgent, findRunnable, retryCodeWaits } from '../../store/claims.ts';
import { type InsertDelivered, leaseOwner, reclaimLeases } from '../../store/leases.ts';
import { nextDue } from '../../store/timers.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { fireTimers } from '../timers.ts';
import { CLAIM_WINDOW, claimBatch } from './claim-batch.ts';
import { type LeaseOutcome, REPORT_REFUSED } from './lease-outcome.ts';
import { LeaseRenewal, leaseTerms, type RenewalSettings } from './lease-renewal.ts';
import { type Delivered, type Interruption, LeaseSession } from './lease-session.ts';

/** Minimum wait, in milliseconds, so that a timer that fails to fire does not cause a busy loop. */
const MIN_WAIT_MS = 5;

/** How a worker claims agents. Times are in milliseconds. */
interface LeaseSettings extends Omit<RenewalSettings, 'owner'> {
  /**
   * Unique among the workers of a store. With the same id, a restarted worker reclaims its agents at once; the default
   * on PostgreSQL is a new id at each start, and the previous leases then have to expire.
   */
  readonly workerId: string;
  /** Tenants whose agents the worker claims; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /** Interval between two scans without a wake-up. */
  readonly pollMs: number;
  readonly maxConcurrentAgents: number;
  /** How long a shutdown waits for in-flight calls before it aborts them. */
  readonly drainMs: number;
}

/** Dependencies of {@link ClaimLoop}. */
export interface ClaimLoopParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: LeaseSettings;
  /** Whether the local clock is wrong; while it is, the loop fires no timers and claims no agents. Default: never. */
  readonly isClockSkewed?: () => boolean;
  /** Returns the time for values that other workers compare with their clocks, such as lease expiries (BD-3). */
  readonly sharedNow: () => Date;
  /** Runs an agent for one lease. */
  readonly run: (session: LeaseSession) => Promise<LeaseOutcome>;
}

/** Claims runnable agents, and runs a session for each lease (RT-2). */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts;
  readonly #sessions = new Map<string, LeaseSession>();
  readonly #running = new Map<LeaseSession, Promise<void>>();
  /** Deliveries that are being stored with a lease; each occupies a session. */
  readonly #accepting = new Set<Promise<boolean>>();
  /** Whether agents may be waiting for a free session; new agents are then queued behind them. */
  #isBacklogged = false;
  // Agents must not inherit the span and the transaction of the Deliver request that starts them.
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #claims: WakeableLoop;
  readonly #renewal: LeaseRenewal;
  readonly #leases: RenewalSettings;
  #isStarted = false;
  #isStopped = false;
  /** Due time of the next timer, as of the latest query; undefined when no timer was running. */
  #nextTimerAt: Date | undefined;

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts;
    const { log, settings } = parts;
    const { workerId, leaseTtlMs, pollMs } = settings;
    this.#leases = { owner: leaseOwner(workerId), leaseTtlMs };
    this.#claims = new WakeableLoop({
      pass: () => this.#takeDue(),
      intervalMs: pollMs,
      backoff: { baseMs: 50, maxMs: 1_000 },
      onError: (error) => log.error({ err: error }, 'failed to claim agents'),
    });
    const sessions = this.#sessions;
    const onRelease = () => this.nudge();
    this.#renewal = new LeaseRenewal({ ...parts, settings: this.#leases, sessions, onRelease });
  }

  /**
   * Starts the loop, reclaims the leases of previous processes of this worker, and retries the agents that wait for a
   * worker with matching code.
   */
  async start(): Promise<void> {
    const { store, clock, settings } = this.#parts;
    await store.transaction(
      async (trx) => {
        await reclaimLeases(trx, settings.workerId);
        await retryCodeWaits(trx, clock.now());
      },
      { background: true },
    );
    this.#isStarted = true;
    this.#renewal.start();
    this.#claims.start();
  }

  /** Wakes the loop, because an agent may have become runnable. */
  nudge(): void {
    this.#claims.wake();
  }

  /**
   * Stores a delivered agent together with a lease and runs it at once, with the message and the slot grant of the
   * delivery. If the loop is not started or is stopped, or if this worker is full or has a backlog, the agent is stored
   * without a lease and claimed later. Returns whether the agent is new.
   */
  async accept(delivery: Delivered, insert: InsertDelivered): Promise<boolean> {
    if (this.#free <= 0) this.#isBacklogged = true;
    if (this.#isStopped || !this.#isStarted || this.#isBacklogged) {
      const row = await insert(undefined);
      if (row !== undefined) this.nudge();
      return row !== undefined;
    }
    const accepting = this.#acceptLeased(delivery, insert);
    this.#accepting.add(accepting);
    try {
      return await accepting;
    } finally {
      const wasFull = this.#free <= 0;
      this.#accepting.delete(accepting);
      if (wasFull) this.nudge();
    }
  }

  async #acceptLeased(delivery: Delivered, insert: InsertDelivered): Promise<boolean> {
    const { store, clock, sharedNow, settings } = this.#parts;
    const row = await insert(leaseTerms(sharedNow(), this.#leases));
    if (row === undefined) return false;
    const { leaseTtlMs } = settings;
    const session = new LeaseSession(row, { store, clock, sharedNow, leaseTtlMs, delivery });
    this.#outside(() => this.#begin(session));
    return true;
  }

  /** Returns the current status of an agent that runs here, including uncommitted changes. */
  statusOf(key: AgentKey): AgentStatus | undefined {
    return this.#sessions.get(agentKeyText(key))?.status;
  }

  /** Aborts an agent that runs here; its rows must already be terminal. */
  cancel(key: AgentKey): void {
    this.#sessions.get(agentKeyText(key))?.interrupt('cancelled', true);
  }

  /** Commits the pending changes of the agents of a run that this process executes. */
  async flush({ tenant, runId }: RunKey): Promise<void> {
    const ofRun = [...this.#sessions.values()].filter(
      ({ lease }) => lease.tenant === tenant && lease.runId === runId,
    );
    await Promise.allSettled(ofRun.map((session) => session.flush()));
  }

  /** Resolves when this process no longer runs the agent, or after `ms` milliseconds. */
  async untilReleased(key: AgentKey, ms: number): Promise<void> {
    const session = this.#sessions.get(agentKeyText(key));
    if (session !== undefined) await settlesWithin(Promise.resolve(this.#running.get(session)), ms);
  }

  /** Prevents an agent that runs here from starting new operations; in-flight calls continue (SV-9). */
  park(key: AgentKey): void {
    this.#sessions.get(agentKeyText(key))?.interrupt('halted', false);
  }

  /**
   * Stops claiming. Agents stop at their next operation; calls that exceed the drain timeout are
   * aborted.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#claims.stop();
    const { drainMs } = this.#parts.settings;
    await settlesWithin(Promise.allSettled(this.#accepting), drainMs);
    this.#interruptAll('drained', false);
    const ended = Promise.all(this.#running.values());
    await settlesWithin(ended, drainMs);
    this.#interruptAll('drained', true);
    // If an agent does not stop, another worker claims it after its lease has expired.
    await settlesWithin(ended, drainMs);
    await this.#renewal.stop();
  }

  /** Fires timers and claims agents; returns the delay until the next pass, in milliseconds. */
  async #takeDue(): Promise<number> {
    const { clock, settings, isClockSkewed } = this.#parts;
    if (!isClockSkewed?.()) {
      await this.#fireTimers();
      if (await this.#claimRunnable()) return 0;
    }
    const timerInMs =
      (this.#nextTimerAt?.getTime() ?? Number.POSITIVE_INFINITY) - clock.now().getTime();
    return Math.max(MIN_WAIT_MS, Math.min(settings.pollMs, timerInMs));
  }

  /** Fires the due timers, if there are any, and reads when the next one is due. */
  async #fireTimers(): Promise<void> {
    const { store, clock, settings, log } = this.#parts;
    try {
      const { tenants } = settings;
      this.#nextTimerAt = await nextDue(store.db, tenants);
      if (this.#nextTimerAt === undefined || this.#nextTimerAt > clock.now()) return;
      await fireTimers(store, clock, tenants);
      this.#nextTimerAt = await nextDue(store.db, tenants);
    } catch (error) {
      this.#nextTimerAt = undefined;
      log.error({ err: error }, 'failed to fire timers');
    }
  }

  /** Claims runnable agents; returns whether at least one was claimed. */
  async #claimRunnable(): Promise<boolean> {
    const { store, clock, sharedNow, settings } = this.#parts;
    const free = this.#free;
    if (free <= 0) return false;
    const terms = leaseTerms(sharedNow(), this.#leases);
    const { dialect } = store;
    const most = dialect === 'sqlite' ? free : free * CLAIM_WINDOW;
    const found = await findRunnable(store.db, terms.at, most, settings.tenants);
    this.#isBacklogged = found.length >= free;
    // This process renews the leases of its own agents; even after a forward clock step it must not claim them again
    // (BD-3).
    const others = found.filter((key) => !this.#sessions.has(agentKeyText(key)));
    const runnable = claimBatch(others, free, { dialect, runOf: ({ runId }) => runId });
    if (runnable.length === 0) return false;
    const claimed = await store.transaction(
      async (trx) => {
        const rows = [];
        for (const key of runnable) rows.push(await claimAgent(trx, key, terms));
        return rows.filter((row) => row !== undefined);
      },
      { runs: runnable },
    );
    const { leaseTtlMs } = settings;
    for (const row of claimed) {
      this.#begin(new LeaseSession(row, { store, clock, sharedNow, leaseTtlMs }));
    }
    return claimed.length > 0;
  }

  /** Number of further agents that this worker can run. */
  get #free(): number {
    const { maxConcurrentAgents } = this.#parts.settings;
    return maxConcurrentAgents - this.#sessions.size - this.#accepting.size;
  }

  #begin(session: LeaseSession): void {
    const { log, run } = this.#parts;
    const key = agentKeyText(session.lease);
    const { tenant, runId, instance, epoch } = session.lease;
    const ids = { tenant, run_id: runId, agent: instance, epoch: String(epoch) };
    // This process has claimed the agent again after the lease expired, so the old session must stop.
    this.#sessions.get(key)?.interrupt('lost', true);
    this.#sessions.set(key, session);
    if (this.#isStopped) session.interrupt('drained', false);
    const running = run(session)
      .then((outcome) => {
        const level = outcome.startsWith(REPORT_REFUSED) ? 'warn' : 'info';
        log[level]({ ...ids, outcome }, 'agent lease released');
      })
      .catch((error: unknown) => log.error({ ...ids, err: error }, 'agent abandoned'))
      .finally(() => {
        const wasFull = this.#free <= 0;
        if (this.#sessions.get(key) === session) this.#sessions.delete(key);
        this.#running.delete(session);
        // If the end of this agent made other agents runnable, `run` itself wakes the loop.
        if (wasFull || !isTerminal(session.status.state)) this.nudge();
      });
    this.#running.set(session, running);
  }

  #interruptAll(why: Interruption, abort: boolean): void {
    for (const session of this.#sessions.values()) session.interrupt(why, abort);
  }
}
