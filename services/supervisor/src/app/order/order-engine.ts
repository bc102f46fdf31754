import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { isWritError } from '@writ/kernel';
import { contextFromTraceparent, withSpan } from '@writ/telemetry';
import type { SupervisorContext } from '../../context.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import {
  HALT_ORDERS,
  type HaltOrderKind,
  isHaltOrder,
  isHeldByHalt,
  isLasting,
  isOrderKind,
  ORDER_STEPS,
  type OrderKind,
  reasonOf,
  retryDelayMs,
  stepsFrom,
} from '../../domain/order/order-rules.ts';
import { waitWhileHalted } from '../../store/halt/halts.ts';
import {
  dueOrders,
  findDueOrder,
  nextDueAt,
  type OrderRow,
  saveOrder,
} from '../../store/orders.ts';
import { loadRun } from '../../store/run/runs.ts';
import { endChildOrder } from '../agent/end-child-order.ts';
import { spawnChildOrder } from '../agent/spawn-child-order.ts';
import { wakeAgentOrder } from '../agent/wake-agent-order.ts';
import { haltOrder } from '../halt/halt-order.ts';
import { resumeOrder } from '../halt/resume-order.ts';
import { endRunOrder } from '../run/end-run-order.ts';
import { startRunOrder } from '../run/start-run-order.ts';
import type { HaltOrderHandler, OrderHandler, StepDone } from './order-handler.ts';

const MAX_AT_ONCE = 64;
const FAILURE_PAUSE_MS = 10;
/** Pause before an order that another replica drives is read again. */
const CLAIM_PAUSE_MS = 100;
/** Longest pause, so that an order placed by another process is found. */
const MAX_SLEEP_MS = 5_000;
/** Longest back-off of a halt: it must be in force soon after all services are reachable. */
const HALT_RETRY_MAX_MS = 1_000;

type RunOrderKind = Exclude<OrderKind, HaltOrderKind>;

const RUN_ORDERS = (Object.keys(ORDER_STEPS) as OrderKind[]).filter((kind) => !isHaltOrder(kind));

/**
 * Executes the orders of the store with back-off, each from its recorded step, including those that a previous
 * process left unfinished. One order at a time per run, in the order of placement, so that the end of a run never
 * overtakes its start. Halt orders do not wait for other orders; orders that start something wait while their run
 * is halted (SV-9).
 */
export class OrderEngine {
  readonly #context: SupervisorContext;
  readonly #handlers: Readonly<Record<RunOrderKind, OrderHandler>>;
  readonly #halts: Readonly<Record<HaltOrderKind, HaltOrderHandler>>;
  readonly #driving = new Map<string, Promise<void>>();
  // The caller that places an order is inside a request; the engine must not inherit its span.
  readonly #outside = AsyncLocalStorage.snapshot();
  #unsubscribe: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #rung = false;
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
    this.#halts = { halt: haltOrder(context), resume: resumeOrder(context) };
  }

  /** Starts with the orders that are due. */
  start(): void {
    this.#unsubscribe = this.#context.store.changes.subscribe('orders', () => this.#ring());
    this.#ring();
  }

  /** Starts no further step; resolves when the steps in flight have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe?.();
    clearTimeout(this.#timer);
    await this.#looking;
    await Promise.all(this.#driving.values());
  }

  #ring(): void {
    if (this.#stopped) return;
    this.#rung = true;
    this.#looking ??= this.#outside(() => this.#look()).finally(() => {
      this.#looking = undefined;
      if (this.#rung) this.#ring();
    });
  }

  async #look(): Promise<void> {
    this.#rung = false;
    clearTimeout(this.#timer);
    const { store, clock, telemetry } = this.#context;
    let sleepMs = MAX_SLEEP_MS;
    try {
      const now = clock.now();
      for (const order of await dueOrders(store.db, now, MAX_AT_ONCE * 4, HALT_ORDERS)) {
        const { haltId } = JSON.parse(order.payload) as HaltPayload;
        this.#begin(`halt ${haltId}`, order);
      }
      for (const order of await dueOrders(store.db, now, MAX_AT_ONCE * 4, RUN_ORDERS)) {
        if (this.#driving.size >= MAX_AT_ONCE) break;
        this.#begin(`${order.tenant}/${order.run_id}`, order);
      }
      const next = await nextDueAt(store.db, now);
      if (next !== undefined) sleepMs = Math.min(sleepMs, next.getTime() - now.getTime());
    } catch (error) {
      telemetry.log.error({ err: error }, 'Orders cannot be read; trying again.');
    }
    if (!this.#stopped) this.#timer = setTimeout(() => this.#ring(), Math.max(1, sleepMs));
  }

  /** Drives an order, unless this replica drives another order of the same key. */
  #begin(lane: string, order: OrderRow): void {
    if (this.#driving.has(lane)) return;
    this.#driving.set(
      lane,
      this.#driveAlone(lane, order).finally(() => {
        this.#driving.delete(lane);
        this.#ring();
      }),
    );
  }

  /** Drives an order, unless another replica drives one of the same key. */
  async #driveAlone(lane: string, order: OrderRow): Promise<void> {
    const { store, telemetry, clock } = this.#context;
    if (!store.replicas.shared) return await this.#drive(order);
    try {
      const claim = await store.replicas.claim(`orders of ${lane}`);
      if (claim === undefined) {
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
        () => this.#takeSteps(order),
      );
    } catch (error) {
      telemetry.log.warn(
        { ...ids, reason: reasonOf(error), ...(isWritError(error) ? {} : { err: error }) },
        `order ${order.kind} failed`,
      );
      // Saving the failure may have failed, too; an unreachable store must not be polled in a busy loop.
      await sleep(FAILURE_PAUSE_MS);
    }
  }

  /** Executes the remaining steps; saves a failure before throwing it. */
  async #takeSteps(order: OrderRow): Promise<void> {
    if (!isOrderKind(order.kind)) throw new TypeError(`Unknown kind of order: ${order.kind}`);
    const memo = new Map<string, string>();
    const steps = stepsFrom(order.kind, order.step);
    let stands = order.step;
    for (const [index, step] of steps.entries()) {
      if (this.#stopped) return;
      try {
        const next = steps[index + 1];
        const over = await this.#takeStep(order.kind, { ...order, step: stands }, step, next, memo);
        if (over) return;
        stands = next ?? '';
      } catch (error) {
        const attempts = (index === 0 ? order.attempts : 0) + 1;
        await this.#failed(order.kind, { ...order, step: stands }, step, attempts, memo, error);
        throw error;
      }
    }
  }

  /**
   * Executes one step and commits its changes with the progress of the order; returns whether the order is done. If
   * another replica drives the same order, a step may run twice; the replica that commits first continues alone.
   */
  async #takeStep(
    kind: OrderKind,
    order: OrderRow,
    step: string,
    next: string | undefined,
    memo: Map<string, string>,
  ): Promise<boolean> {
    const { store, clock } = this.#context;
    const { over = false, commit } = (await this.#perform(kind, order, step, memo)) ?? {};
    const progress =
      over || next === undefined
        ? ({ state: 'done', step: '' } as const)
        : ({ step: next, attempts: 0, last_error: null } as const);
    const isOurs = await store.transaction(
      async (trx) => {
        if (!(await saveOrder(trx, placeOf(order), progress))) return false;
        await commit?.(trx, clock.now());
        return true;
      },
      { background: true },
    );
    return over || !isOurs;
  }

  async #perform(
    kind: OrderKind,
    order: OrderRow,
    step: string,
    memo: Map<string, string>,
  ): Promise<StepDone | undefined> {
    if (isHaltOrder(kind)) return await this.#halts[kind].steps[step]?.({ order });
    const { store } = this.#context;
    const run = await loadRun(store.db, { tenant: order.tenant, runId: order.run_id });
    if (isHeldByHalt(kind) && run.ended_at === null && run.state !== 'ENDING') {
      const { instance = run.root_instance } = JSON.parse(order.payload) as { instance?: string };
      await waitWhileHalted(store.db, { tenant: run.tenant, runId: run.run_id, instance });
    }
    return await this.#handlers[kind].steps[step]?.({ order, run, memo });
  }

  async #failed(
    kind: OrderKind,
    order: OrderRow,
    step: string,
    attempts: number,
    memo: Map<string, string>,
    error: unknown,
  ): Promise<void> {
    const { store, clock, config } = this.#context;
    await store.transaction(
      async (trx) => {
        const now = clock.now();
        const giveUp = isHaltOrder(kind) ? undefined : this.#handlers[kind].giveUp;
        if (giveUp !== undefined && isLasting(error, attempts)) {
          const run = await loadRun(trx, { tenant: order.tenant, runId: order.run_id });
          const failed = { state: 'failed', last_error: reasonOf(error) } as const;
          // Another replica may have completed the step.
          if (!(await saveOrder(trx, placeOf(order), failed))) return;
          await giveUp(trx, { order, run, memo }, reasonOf(error), now);
          return;
        }
        const { orderRetryMs, orderRetryMaxMs } = config;
        const maxMs = isHaltOrder(kind)
          ? Math.min(orderRetryMaxMs, HALT_RETRY_MAX_MS)
          : orderRetryMaxMs;
        const delayMs = retryDelayMs(attempts, orderRetryMs, maxMs, Math.random());
        await saveOrder(trx, placeOf(order), {
          step,
          attempts,
          next_attempt_at: new Date(now.getTime() + delayMs),
          last_error: reasonOf(error),
        });
      },
      { background: true },
    );
  }
}

/** The progress of an order when this replica last read or wrote it. */
function placeOf({ order_id: orderId, step }: OrderRow) {
  return { orderId, step };
}
