import type { SupervisorContext } from '../../context.ts';
import { PROBE_MS } from '../../domain/admission/start-queue.ts';
import type { DueTerms } from '../../domain/order/order-rules.ts';
import { runEndTopic } from '../../store/change/changes.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { dueOrders } from '../../store/orders.ts';
import { ACTIVE_RUN_STATES, activeRuns } from '../../store/run/live-runs.ts';

/** Maximum number of waiting starts that are read at once. */
const MAX_READ = 1_024;

type ActiveRun = Awaited<ReturnType<typeof activeRuns>>[number];

/** Drives the order of a start. */
type Drive = (order: OrderRow) => Promise<void>;

/**
 * Passes queued starts to the order engine while the number of active runs is below the adaptive limit; at the limit,
 * passes one start every PROBE_MS (BD-5).
 */
export class StartAdmission {
  readonly #context: SupervisorContext;
  readonly #drive: Drive;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /**
   * The starts that were placed, and the names of the runs that became inactive, since the last read of the store
   * began.
   */
  readonly #placed = new Set<OrderRow>();
  readonly #inactive = new Set<string>();
  /** Functions that stop watching for the end of an active run, by run name. */
  readonly #followed = new Map<string, () => void>();

  constructor(context: SupervisorContext, drive: Drive) {
    this.#context = context;
    this.#drive = drive;
  }

  /** Subscribes to the states of runs; when a run becomes inactive, the next start can be admitted. */
  start(): void {
    const { store } = this.#context;
    this.#unsubscribe = store.onRunStates((states) => {
      for (const { tenant, runId, state } of states) {
        const isActive = ACTIVE_RUN_STATES.some((active) => active === state);
        this.#setActive({ tenant, run_id: runId }, isActive);
      }
      this.#admit();
    });
  }

  /** Admits no further start. */
  stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    for (const name of this.#followed.keys()) this.#unfollow(name);
    clearTimeout(this.#timer);
  }

  /** Accepts a start that this process has placed. */
  accept(order: OrderRow): void {
    this.#placed.add(order);
    this.#context.starts.add(order);
    this.#admit();
  }

  /**
   * Reads the due starts; `ours` selects the starts that this replica drives. If any start is due, also reads the
   * active runs. Returns whether more starts may be due.
   */
  async read(
    terms: DueTerms,
    ours: (due: readonly OrderRow[]) => readonly OrderRow[],
  ): Promise<boolean> {
    const { store, starts } = this.#context;
    this.#placed.clear();
    this.#inactive.clear();
    const due = await dueOrders(store.db, terms, MAX_READ, ['start_run']);
    if (due.length > 0) this.#replaceActive(await activeRuns(store.db));
    // Another replica may have driven starts that this replica has in memory.
    if (store.replicas.shared) starts.replace([...ours(due), ...this.#placed]);
    else for (const order of due) starts.add(order);
    this.#admit();
    return due.length === MAX_READ;
  }

  #replaceActive(read: readonly ActiveRun[]): void {
    const runs = read.filter((run) => !this.#inactive.has(nameOf(run)));
    this.#context.starts.replaceActive(runs, performance.now());
    const names = new Set(runs.map(nameOf));
    for (const name of this.#followed.keys()) if (!names.has(name)) this.#unfollow(name);
    for (const run of runs) this.#follow(run);
  }

  #setActive(run: ActiveRun, isActive: boolean): void {
    this.#context.starts.setActive(run.tenant, run.run_id, isActive, performance.now());
    const name = nameOf(run);
    if (isActive) {
      this.#inactive.delete(name);
      this.#follow(run);
    } else {
      this.#inactive.add(name);
      this.#unfollow(name);
    }
  }

  /** Subscribes to the end of a run, which another replica may record. */
  #follow(run: ActiveRun): void {
    const { replicas } = this.#context.store;
    const name = nameOf(run);
    if (!replicas.shared || this.#followed.has(name)) return;
    const { tenant, run_id: runId } = run;
    const unfollow = replicas.onHint(runEndTopic({ tenant, runId }), () => {
      this.#setActive(run, false);
      this.#admit();
    });
    this.#followed.set(name, unfollow);
  }

  #unfollow(name: string): void {
    this.#followed.get(name)?.();
    this.#followed.delete(name);
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

function nameOf({ tenant, run_id: runId }: ActiveRun): string {
  return `${tenant}/${runId}`;
}
