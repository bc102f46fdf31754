import { callKeyText, isWritError, settlesWithin } from '@writ/kernel';
import { type BackgroundWork, Sweeper } from '@writ/service';
import type { ProxyContext } from '../../context.ts';
import {
  claimTask,
  decidedTasks,
  type ToolCallRow,
  toolCallKeyOf,
} from '../../store/tool-calls.ts';
import { CLAIM_MS, endTask } from './tasks.ts';

/** Maximum number of tasks that one replica completes concurrently, in total and for one tenant. */
const MAX_TASKS = 64;
const MAX_TASKS_PER_TENANT = 16;

interface TaskInProgress {
  readonly row: ToolCallRow;
  readonly end: Promise<void>;
  /** Monotonic time of the latest claim, ms. */
  claimedAt: number;
}

/**
 * Completes tasks after the decision on their call: executes the call if it was approved, and records that the task has
 * a result. Another replica may have received the decision (AP-4). A slow tool does not delay other tasks.
 */
export class DecidedTasks implements BackgroundWork {
  readonly #context: ProxyContext;
  readonly #sweeper: Sweeper;
  readonly #inProgress = new Map<string, TaskInProgress>();

  /** @param isPaused returns true while no task may start, for example while the clock is wrong */
  constructor(context: ProxyContext, isPaused: () => boolean) {
    this.#context = context;
    const { config, telemetry } = context;
    const sweeps = { completeTasks: () => this.#begin() };
    this.#sweeper = new Sweeper(sweeps, config.sweepMs, telemetry.log, isPaused);
  }

  start(): void {
    this.#sweeper.start();
  }

  /**
   * Stops starting tasks and waits for the tasks in progress. Another replica completes a task that has not ended
   * within the drain time.
   */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    const ends = [...this.#inProgress.values()].map(({ end }) => end);
    await settlesWithin(Promise.all(ends), this.#context.config.drainMs);
  }

  async #begin(): Promise<void> {
    await this.#claimAgain();
    const { store, clock } = this.#context;
    const limit = MAX_TASKS - this.#inProgress.size;
    if (limit === 0) return;
    for (const row of await decidedTasks(store.db, clock.now(), limit, this.#busyTenants())) {
      if (this.#countOf(row.tenant) < MAX_TASKS_PER_TENANT) this.#complete(row);
    }
  }

  /** Renews the claims of the tasks in progress, so that other replicas do not start them. */
  async #claimAgain(): Promise<void> {
    const { store, clock } = this.#context;
    for (const task of this.#inProgress.values()) {
      if (clock.monotonicMs() - task.claimedAt < CLAIM_MS / 3) continue;
      task.claimedAt = clock.monotonicMs();
      const call = toolCallKeyOf(task.row);
      const until = new Date(clock.now().getTime() + CLAIM_MS);
      await store.transaction((trx) => claimTask(trx, call, until), { run: call });
    }
  }

  #complete(row: ToolCallRow): void {
    const { clock, telemetry } = this.#context;
    const key = callKeyText(toolCallKeyOf(row));
    if (this.#inProgress.has(key)) return;
    const end = endTask(this.#context, row, new AbortController().signal)
      .catch((error: unknown) => {
        if (isWritError(error) && error.reason === 'RUN_ENDED') return;
        telemetry.log.warn({ err: error, call_id: row.call_id }, 'decided task not completed yet');
      })
      .then(() => void this.#inProgress.delete(key));
    this.#inProgress.set(key, { row, end, claimedAt: clock.monotonicMs() });
  }

  #busyTenants(): readonly string[] {
    const tenants = new Set([...this.#inProgress.values()].map(({ row }) => row.tenant));
    return [...tenants].filter((tenant) => this.#countOf(tenant) >= MAX_TASKS_PER_TENANT);
  }

  #countOf(tenant: string): number {
    return [...this.#inProgress.values()].filter(({ row }) => row.tenant === tenant).length;
  }
}
