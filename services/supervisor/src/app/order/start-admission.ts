import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import type { DueTerms } from '../../domain/order/order-rules.ts';
import { PROBE_MS } from '../../domain/order/start-queue.ts';
import { runEndTopic } from '../../store/change/changes.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { dueOrders } from '../../store/orders.ts';
import { ACTIVE_RUN_STATES, activeRuns } from '../../store/run/live-runs.ts';

/** Most waiting starts that are read at once. */
const MAX_READ = 1_024;

type ActiveRun = Awaited<ReturnType<typeof activeRuns>>[number];

/** Drives the order of a start. */
type Drive = (order: OrderRow) => Promise<void>;

/** Passes the starts of the queue to the order engine, as fast as runs end (BD-5). */
export class StartAdmission {
  readonly #context: SupervisorContext;
  readonly #drive: Drive;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The starts that were placed since the last read of the store began; it may not contain them. */
  readonly #placed = new Set<OrderRow>();
  /** How to stop following the ends of active runs, by name. */
  readonly #followed = new Map<string, () => void>();

  constructor(context: SupervisorContext, drive: Drive) {
    this.#context = context;
    this.#drive = drive;
  }

  /** Follows the states of runs; a run that ends admits the next start. */
  start(): void {
    const { store } = this.#context;
    this.#unsubscribe = store.onRunStates((states) => {
      for (const { tenant, runId, state } of states) {
        const isActive = ACTIVE_RUN_STATES.some((active) => active === state);
        this.#setActive({ tenant, runId }, isActive);
      }
      this.#admit();
    });
  }

  /** Admits no further start. */
  stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    for (const unfollow of this.#followed.values()) unfollow();
    this.#followed.clear();
    clearTimeout(this.#timer);
  }

  /** Accepts a start that this process has placed. */
  accept(order: OrderRow): void {
    this.#placed.add(order);
    this.#context.starts.add(order);
    this.#admit();
  }

  /**
   * Reads the starts that are due, of which `ours` selects those of this replica, and the active runs if there are such
   * starts; returns whether there may be more.
   */
  async read(
    terms: DueTerms,
    ours: (due: readonly OrderRow[]) => readonly OrderRow[],
  ): Promise<boolean> {
    const { store, starts } = this.#context;
    this.#placed.clear();
    const due = await dueOrders(store.db, terms, MAX_READ, ['start_run']);
    if (due.length > 0) this.#replaceActive(await activeRuns(store.db));
    // Another replica may have driven starts that this one has in memory.
    if (store.replicas.shared) starts.replace([...ours(due), ...this.#placed]);
    else for (const order of due) starts.add(order);
    this.#admit();
    return due.length === MAX_READ;
  }

  #replaceActive(runs: readonly ActiveRun[]): void {
    this.#context.starts.replaceActive(runs, performance.now());
    const names = new Set(runs.map(({ tenant, run_id: runId }) => nameOf({ tenant, runId })));
    for (const [name, unfollow] of this.#followed) {
      if (names.has(name)) continue;
      unfollow();
      this.#followed.delete(name);
    }
    for (const { tenant, run_id: runId } of runs) this.#follow({ tenant, runId });
  }

  #setActive(run: RunKey, isActive: boolean): void {
    this.#context.starts.setActive(run.tenant, run.runId, isActive, performance.now());
    if (isActive) {
      this.#follow(run);
      return;
    }
    this.#followed.get(nameOf(run))?.();
    this.#followed.delete(nameOf(run));
  }

  /** Detects that another replica has ended a run. */
  #follow(run: RunKey): void {
    const { replicas } = this.#context.store;
    if (!replicas.shared || this.#followed.has(nameOf(run))) return;
    const unfollow = replicas.onHint(runEndTopic(run), () => {
      this.#setActive(run, false);
      this.#admit();
    });
    this.#followed.set(nameOf(run), unfollow);
  }

  #admit(): void {
    if (this.#unsubscribe === undefined) return;
    const { starts } = this.#context;
    for (;;) {
      const order = starts.next(performance.now());
      if (order === undefined) break;
      void this.#drive(order).then(() => {
        starts.started(order);
        this.#admit();
      });
    }
    clearTimeout(this.#timer);
    if (starts.waiting > 0) this.#timer = setTimeout(() => this.#admit(), PROBE_MS);
  }
}

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}
