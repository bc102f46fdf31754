import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentStatus } from '../domain/agent/state.ts';
import type { AgentKey } from '../store/keys.ts';
import { claimAgent, findRunnable, reclaimLeases, renewLeases } from '../store/leases.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import type { LeaseOutcome } from './ending.ts';
import { type Interruption, Session } from './session.ts';
import { fireTimers, untilNextTimer } from './timers.ts';

/** How a worker takes agents up. Times are milliseconds. */
interface LeaseSettings {
  /** Stable over restarts, so that a restarted worker has its own agents back at once. */
  readonly workerId: string;
  /** Tenants whose agents it takes up; none given means all (SYS-6). */
  readonly tenants: readonly string[];
  readonly leaseTtlMs: number;
  /** Between two looks when nobody nudges. */
  readonly pollMs: number;
  readonly maxConcurrentAgents: number;
  /** How long a stop waits for calls under way before it aborts them. */
  readonly drainMs: number;
}

/** What the loop needs. */
export interface LeaseLoopParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: LeaseSettings;
  /** Runs an agent for one lease. */
  readonly run: (session: Session) => Promise<LeaseOutcome>;
}

/** Takes up agents that can run, keeps their leases alive, and lets go of what it lost (RT-2). */
export class LeaseLoop {
  readonly #parts: LeaseLoopParts;
  readonly #sessions = new Map<string, Session>();
  readonly #running = new Set<Promise<void>>();
  // A nudge comes from inside a request; agents must not inherit its span or transaction.
  readonly #outside = AsyncLocalStorage.snapshot();
  #loop: Promise<void> | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #isNudged = false;
  #isStopped = false;
  #wake: () => void = () => undefined;

  constructor(parts: LeaseLoopParts) {
    this.#parts = parts;
  }

  /** Begins, with what a former process of this worker left behind. */
  async start(): Promise<void> {
    const { store, settings } = this.#parts;
    await store.transaction((trx) => reclaimLeases(trx, settings.workerId), { background: true });
    this.#renewal = setInterval(() => void this.#renew(), settings.leaseTtlMs / 3);
    this.#loop ??= this.#outside(() => this.#run());
  }

  /** Says that an agent may have become runnable. */
  nudge(): void {
    this.#isNudged = true;
    this.#wake();
  }

  /** Where an agent that runs here stands, also between two commits. */
  statusOf(key: AgentKey): AgentStatus | undefined {
    return this.#sessions.get(id(key))?.status;
  }

  /** Aborts an agent that runs here, after its rows were made terminal. */
  cancel(key: AgentKey): void {
    this.#sessions.get(id(key))?.interrupt('cancelled', true);
  }

  /** Has an agent that runs here start nothing new; what is under way goes on (SV-9). */
  park(key: AgentKey): void {
    this.#sessions.get(id(key))?.interrupt('halted', false);
  }

  /** Takes nothing up any more; agents stop at their next operation, calls at the limit (ARCHITECTURE). */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#wake();
    await this.#loop;
    this.#interruptAll('drained', false);
    const { drainMs } = this.#parts.settings;
    const ended = Promise.all(this.#running);
    await withinTime(ended, drainMs);
    this.#interruptAll('drained', true);
    // Whatever still hangs is left to its lease, as after a crash.
    await withinTime(ended, drainMs);
    clearInterval(this.#renewal);
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      this.#isNudged = false;
      const taken = await this.#claimRunnable();
      if (!taken && !this.#isNudged && !this.#isStopped) await this.#sleep();
    }
  }

  /** Takes up what can run; answers whether there was something. */
  async #claimRunnable(): Promise<boolean> {
    const { store, clock, settings, log } = this.#parts;
    try {
      await fireTimers(store, clock, settings.tenants);
      const free = settings.maxConcurrentAgents - this.#sessions.size;
      if (free <= 0) return false;
      const at = clock.now();
      const runnable = await findRunnable(store.db, at, free, settings.tenants);
      if (runnable.length === 0) return false;
      const terms = {
        owner: settings.workerId,
        at,
        expiresAt: new Date(at.getTime() + settings.leaseTtlMs),
      };
      const claimed = await store.transaction(async (trx) => {
        const rows = [];
        for (const key of runnable) rows.push(await claimAgent(trx, key, terms));
        return rows.filter((row) => row !== undefined);
      });
      const { leaseTtlMs } = settings;
      for (const row of claimed) this.#begin(new Session(row, { store, clock, leaseTtlMs }));
      return claimed.length > 0;
    } catch (error) {
      log.error({ err: error }, 'agents could not be taken up');
      return false;
    }
  }

  #begin(session: Session): void {
    const { log, run } = this.#parts;
    const key = id(session.lease);
    const { tenant, runId, instance, epoch } = session.lease;
    const ids = { tenant, run_id: runId, agent: instance, epoch: String(epoch) };
    // An agent whose lease lapsed here is run anew: the old session notices at its next write.
    this.#sessions.get(key)?.interrupt('lost', true);
    this.#sessions.set(key, session);
    const running = run(session)
      .then((outcome) => log.info({ ...ids, outcome }, 'agent let go'))
      .catch((error: unknown) => log.error({ ...ids, err: error }, 'agent abandoned'))
      .finally(() => {
        if (this.#sessions.get(key) === session) this.#sessions.delete(key);
        this.#running.delete(running);
        this.nudge();
      });
    this.#running.add(running);
  }

  async #renew(): Promise<void> {
    const { store, clock, settings, log } = this.#parts;
    if (this.#sessions.size === 0) return;
    const at = clock.now();
    const terms = {
      owner: settings.workerId,
      at,
      expiresAt: new Date(at.getTime() + settings.leaseTtlMs),
    };
    try {
      const before = [...this.#sessions.values()];
      const held = await store.transaction((trx) => renewLeases(trx, terms), { background: true });
      const epochs = new Map(held.map((lease) => [id(lease), lease.epoch]));
      for (const session of before) {
        if (epochs.get(id(session.lease)) !== session.lease.epoch) session.interrupt('lost', true);
      }
    } catch (error) {
      log.warn({ err: error }, 'leases could not be renewed');
    }
  }

  #interruptAll(why: Interruption, abort: boolean): void {
    for (const session of this.#sessions.values()) session.interrupt(why, abort);
  }

  async #sleep(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, await this.#maxSleep());
    // A nudge may have come while the next timer was looked up.
    if (this.#isNudged || this.#isStopped) resolve();
    await promise;
    clearTimeout(timer);
  }

  async #maxSleep(): Promise<number> {
    const { store, clock, settings, log } = this.#parts;
    try {
      return await untilNextTimer(store, clock, settings.tenants, settings.pollMs);
    } catch (error) {
      log.error({ err: error }, 'timers could not be looked up');
      return settings.pollMs;
    }
  }
}

async function withinTime(work: Promise<unknown>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}

function id({ tenant, runId, instance }: AgentKey): string {
  return `${tenant}/${runId}/${instance}`;
}
