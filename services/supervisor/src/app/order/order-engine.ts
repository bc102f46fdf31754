import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, isWritError } from '@writ/kernel';
import { contextFromTraceparent, withSpan } from '@writ/telemetry';
import type { SupervisorContext } from '../../context.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import {
  HALT_ORDERS,
  type HaltOrderKind,
  isDelayedByHalt,
  isHaltOrder,
  isOrderKind,
  isPermanent,
  type OrderKind,
  RUNNING_ORDERS,
  reasonOf,
  stepsFrom,
} from '../../domain/order/order-rules.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { waitWhileHalted } from '../../store/halt/halts.ts';
import { dueOrders, findDueOrder, nextDueAt, saveOrder } from '../../store/orders.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { endChildOrder } from '../agent/end-child-order.ts';
import { spawnChildOrder } from '../agent/spawn-child-order.ts';
import { wakeAgentOrder } from '../agent/wake-agent-order.ts';
import { haltOrder } from '../halt/halt-order.ts';
import { resumeOrder } from '../halt/resume-order.ts';
import { endRunOrder } from '../run/end-run-order.ts';
import { startRunOrder } from '../run/start-run-order.ts';
import type {
  HaltOrderHandler,
  Memo,
  OrderFailure,
  OrderHandler,
  StepDone,
} from './order-handler.ts';
import { StartAdmission } from './start-admission.ts';

const MAX_AT_ONCE = 64;
const FAILURE_PAUSE_MS = 10;
/** Pause before an order that another replica drives is read again. */
const CLAIM_PAUSE_MS = 100;
/** Longest pause, so that an order placed by another process is found. */
const MAX_SLEEP_MS = 5_000;
/** Longest back-off of a halt: it must be in force soon after all services are reachable. */
const HALT_RETRY_MAX_MS = 1_000;

/** One execution of a step. */
interface StepAttempt {
  readonly kind: OrderKind;
  /** With the step that is recorded in the store. */
  readonly order: OrderRow;
  readonly step: string;
  readonly memo: Memo;
  /** The run as it was just read; omitted when it has to be read. */
  readonly run?: RunRow | undefined;
}

type RunOrderKind = Exclude<OrderKind, HaltOrderKind>;

/**
 * Executes the orders of the store with back-off, each from its recorded step, including those that a previous
 * process left unfinished. One order at a time per run, in the order of placement, so that the end of a run never
 * overtakes its start. Halt orders do not wait for other orders; orders that start something wait while their run
 * is halted (SV-9). Orders of runs that have started go before every start, which waits for running work (BD-5).
 */
export class OrderEngine {
  readonly #context: SupervisorContext;
  readonly #handlers: Readonly<Record<RunOrderKind, OrderHandler>>;
  readonly #halts: Readonly<Record<HaltOrderKind, HaltOrderHandler>>;
  readonly #starts: StartAdmission;
  readonly #driving = new Map<string, Promise<void>>();
  // The caller that places an order is inside a request; the engine must not inherit its span.
  readonly #outside = AsyncLocalStorage.snapshot();
  /** The id of the order that is driven, by key. */
  readonly #current = new Map<string, string>();
  /** Orders that wait for another one of their key. */
  readonly #waiting = new Map<string, OrderRow[]>();
  /** Keys with an order that failed: it precedes later ones, so the store has to be read. */
  readonly #failedKeys = new Set<string>();
  /** The store may hold due orders that are not handed over in memory. */
  #mustRead = true;
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #starting: Promise<void> | undefined;
  #woken = false;
  #stopped = false;

  constructor(context: SupervisorContext) {
    this.#context = context;
    this.#handlers = {
      start_run: startRunOrder(context),
      wake_agent: wakeAgentOrder(context),
      spawn_child: spawnChildOrder(context),
      end_child: endChildOrder(context),
      end_run: endRunOrder(context),
    };
    this.#starts = new StartAdmission(context, (order) => this.#driveStart(order));
    this.#halts = { halt: haltOrder(context), resume: resumeOrder(context) };
  }

  /** Starts with the orders that are due. */
  start(): void {
    const { store } = this.#context;
    this.#starts.start();
    const unsubscribe = store.changes.subscribe('orders', () => this.#wake());
    const stopListening = store.onOrders((orders) => this.#accept(orders));
    this.#unsubscribe = () => {
      unsubscribe();
      stopListening();
    };
    this.#wake();
  }

  /** Starts no further step; resolves when the steps in flight have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#starts.stop();
    clearTimeout(this.#timer);
    await this.#starting;
    await Promise.all(this.#driving.values());
  }

  /**
   * Accepts orders that this process has just placed, without reading them (CO-1). The store decides the sequence where
   * an older order of the key may be open, and where replicas share the store.
   */
  #accept(orders: readonly OrderRow[]): void {
    for (const order of orders) {
      if (isStart(order)) {
        // The first order of its run: the store has no older one.
        this.#outside(() => this.#starts.accept(order));
        continue;
      }
      const isFull = this.#driving.size >= MAX_AT_ONCE && !isHalt(order);
      const { shared } = this.#context.store.replicas;
      if (isFull || shared || this.#failedKeys.has(keyOf(order))) this.#mustRead = true;
      else if (!this.#mustRead) this.#outside(() => this.#offer(order));
    }
    if (this.#mustRead) this.#wake();
  }

  /** Starts an order, or queues it behind the current one of its key. */
  #offer(order: OrderRow): void {
    const key = keyOf(order);
    const current = this.#current.get(key);
    if (current === undefined) {
      this.#start(key, order);
      return;
    }
    const waiting = this.#waiting.get(key) ?? [];
    const isKnown = [current, ...waiting.map((other) => other.order_id)].includes(order.order_id);
    if (!isKnown) this.#waiting.set(key, [...waiting, order]);
  }

  #wake(): void {
    if (this.#stopped) return;
    this.#woken = true;
    this.#starting ??= this.#outside(() => this.#startDue()).finally(() => {
      this.#starting = undefined;
      if (this.#woken) this.#wake();
    });
  }

  async #startDue(): Promise<void> {
    this.#woken = false;
    clearTimeout(this.#timer);
    const { store, clock, telemetry } = this.#context;
    let sleepMs = MAX_SLEEP_MS;
    try {
      const now = clock.now();
      for (const order of await dueOrders(store.db, now, MAX_AT_ONCE * 4, HALT_ORDERS)) {
        this.#offer(order);
      }
      const due = await dueOrders(store.db, now, MAX_AT_ONCE * 4, RUNNING_ORDERS);
      this.#mustRead = due.length === MAX_AT_ONCE * 4;
      for (const order of due) {
        if (this.#driving.size >= MAX_AT_ONCE) {
          this.#mustRead = true;
          break;
        }
        this.#offer(order);
      }
      if (await this.#starts.read(now)) this.#mustRead = true;
      const next = await nextDueAt(store.db, now);
      if (next !== undefined) sleepMs = Math.min(sleepMs, next.getTime() - now.getTime());
    } catch (error) {
      telemetry.log.error({ err: error }, 'failed to read orders; retrying');
    }
    if (!this.#stopped) this.#timer = setTimeout(() => this.#wake(), Math.max(1, sleepMs));
  }

  /** Drives an order; no other order of its key is driven by this replica. */
  #start(key: string, order: OrderRow): void {
    if (this.#stopped) return;
    this.#failedKeys.delete(key);
    this.#current.set(key, order.order_id);
    this.#driving.set(
      key,
      this.#driveAlone(key, order).finally(() => {
        this.#driving.delete(key);
        this.#current.delete(key);
        this.#next(key);
      }),
    );
  }

  /** Drives an admitted start; returns whether it has succeeded. */
  async #driveStart(order: OrderRow): Promise<boolean> {
    const key = keyOf(order);
    const isFree = !this.#current.has(key);
    this.#outside(() => this.#offer(order));
    // The run of a start that waits behind another order is ending.
    if (!isFree) return false;
    await this.#driving.get(key);
    return !this.#failedKeys.has(key);
  }

  /** Continues with the orders that wait for the one that has just ended. */
  #next(key: string): void {
    const [next, ...others] = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    if (this.#failedKeys.has(key)) this.#mustRead = true;
    else if (next !== undefined) {
      if (others.length > 0) this.#waiting.set(key, others);
      this.#start(key, next);
    }
    if (this.#mustRead) this.#wake();
  }

  /** Drives an order, unless another replica drives one of the same key. */
  async #driveAlone(key: string, order: OrderRow): Promise<void> {
    const { store, telemetry, clock } = this.#context;
    if (!store.replicas.shared) return await this.#drive(order);
    try {
      const claim = await store.replicas.claim(`orders of ${key}`);
      if (claim === undefined) {
        this.#failedKeys.add(key);
        await sleep(CLAIM_PAUSE_MS);
        return;
      }
      try {
        // The order may have progressed since it was read.
        const due = await findDueOrder(store.db, order.order_id, clock.now());
        if (due !== undefined) await this.#drive(due);
      } finally {
        await claim.release();
      }
    } catch (error) {
      this.#failedKeys.add(key);
      telemetry.log.warn({ err: error, order_id: order.order_id }, 'An order cannot be claimed.');
      await sleep(CLAIM_PAUSE_MS);
    }
  }

  async #drive(order: OrderRow): Promise<void> {
    const { store, telemetry } = this.#context;
    const ids = { tenant: order.tenant, run_id: order.run_id, order_id: order.order_id };
    try {
      const run =
        order.run_id === ''
          ? undefined
          : await loadRun(store.db, { tenant: order.tenant, runId: order.run_id });
      await withSpan(
        telemetry.tracer,
        `order ${order.kind}`,
        {
          ...(run && { parent: contextFromTraceparent(run.traceparent) }),
          attributes: {
            'writ.tenant': order.tenant,
            'writ.run_id': order.run_id,
            'writ.order_id': order.order_id,
          },
        },
        () => this.#runSteps(order, run),
      );
    } catch (error) {
      this.#failedKeys.add(keyOf(order));
      // A peer that shuts down is ordinary; the order is retried on its next replica or start.
      const level = reasonOf(error) === 'DRAINING' ? 'info' : 'warn';
      telemetry.log[level](
        { ...ids, reason: reasonOf(error), ...(isWritError(error) ? {} : { err: error }) },
        `order ${order.kind} failed`,
      );
      // Saving the failure may have failed, too; an unreachable store must not be polled in a busy loop.
      await sleep(FAILURE_PAUSE_MS);
    }
  }

  /** Executes the remaining steps; saves a failure before throwing it. */
  async #runSteps(order: OrderRow, run: RunRow | undefined): Promise<void> {
    const { kind } = order;
    if (!isOrderKind(kind)) throw new TypeError(`Unknown kind of order: ${kind}`);
    const memo: Memo = { events: [] };
    const steps = stepsFrom(kind, order.step);
    let recordedStep = order.step;
    for (const [index, step] of steps.entries()) {
      if (this.#stopped) return;
      const attempt = {
        kind,
        order: { ...order, step: recordedStep },
        step,
        memo,
        run: index === 0 ? run : undefined,
      };
      try {
        const next = steps[index + 1];
        const outcome = await this.#runStep(attempt, next);
        if (outcome === 'over') return;
        if (outcome === 'committed') recordedStep = next ?? '';
      } catch (error) {
        const failures = (index === 0 ? order.attempts : 0) + 1;
        await this.#recordFailure(attempt, failures, error);
        throw error;
      }
    }
  }

  /**
   * Executes one step and commits its changes with the progress of the order; returns whether the order is done. If
   * another replica drives the same order, a step may run twice; the replica that commits first continues alone.
   */
  async #runStep(
    attempt: StepAttempt,
    next: string | undefined,
  ): Promise<'over' | 'committed' | 'unchanged'> {
    const { store, clock } = this.#context;
    const done = (await this.#perform(attempt)) ?? {};
    if (done.unchanged === true) return 'unchanged';
    const { over = false, commit } = done;
    const progress =
      over || next === undefined
        ? ({ state: 'done', step: '' } as const)
        : ({ step: next, attempts: 0, last_error: null } as const);
    const isOurs = await store.transaction(
      async (trx) => {
        if (!(await saveOrder(trx, progressOf(attempt.order), progress))) return false;
        await commit?.(trx, clock.now());
        return true;
      },
      isHaltOrder(attempt.kind) ? { urgent: true } : { background: true },
    );
    return over || !isOurs ? 'over' : 'committed';
  }

  async #perform({ kind, order, step, memo, ...read }: StepAttempt): Promise<StepDone | undefined> {
    if (isHaltOrder(kind)) return await this.#halts[kind].steps[step]?.({ order });
    const { store } = this.#context;
    const run =
      read.run ?? (await loadRun(store.db, { tenant: order.tenant, runId: order.run_id }));
    if (isDelayedByHalt(kind) && run.ended_at === null && run.state !== 'ENDING') {
      const { instance = run.root_instance } = JSON.parse(order.payload) as { instance?: string };
      await waitWhileHalted(store.db, { tenant: run.tenant, runId: run.run_id, instance });
    }
    return await this.#handlers[kind].steps[step]?.({ order, run, memo });
  }

  async #recordFailure(
    { kind, order, step, memo }: StepAttempt,
    failures: number,
    error: unknown,
  ): Promise<void> {
    const { store, clock, config } = this.#context;
    await store.transaction(
      async (trx) => {
        const now = clock.now();
        const giveUp = isHaltOrder(kind) ? undefined : this.#handlers[kind].giveUp;
        if (giveUp !== undefined && isPermanent(error, failures)) {
          const run = await loadRun(trx, { tenant: order.tenant, runId: order.run_id });
          const failed = { state: 'failed', last_error: reasonOf(error) } as const;
          // Another replica may have completed the step.
          if (!(await saveOrder(trx, progressOf(order), failed))) return;
          await giveUp(trx, { order, run, memo }, failureOf(error), now);
          return;
        }
        const { orderRetryMs: baseMs, orderRetryMaxMs } = config;
        const maxMs = isHaltOrder(kind)
          ? Math.min(orderRetryMaxMs, HALT_RETRY_MAX_MS)
          : orderRetryMaxMs;
        await saveOrder(trx, progressOf(order), {
          step,
          attempts: failures,
          next_attempt_at: new Date(now.getTime() + backoffMs(failures, { baseMs, maxMs })),
          last_error: reasonOf(error),
        });
      },
      { background: true },
    );
  }
}

/** Orders of one key are driven one after the other: those of a run, and those of a halt. */
function keyOf(order: OrderRow): string {
  if (!isHalt(order)) return `${order.tenant}/${order.run_id}`;
  return `halt ${(JSON.parse(order.payload) as HaltPayload).haltId}`;
}

function isStart({ kind }: OrderRow): boolean {
  return kind === 'start_run';
}

function isHalt({ kind }: OrderRow): boolean {
  return isOrderKind(kind) && isHaltOrder(kind);
}

/** The progress of an order when this replica last read or wrote it. */
function progressOf({ order_id: orderId, step }: OrderRow) {
  return { orderId, step };
}

/** The reason code and the sentence of an error; only errors of a service have a sentence for people. */
function failureOf(error: unknown): OrderFailure {
  return { reason: reasonOf(error), detail: isWritError(error) ? error.message : undefined };
}
