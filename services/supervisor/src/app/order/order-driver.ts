import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, isWritError, type RunKey } from '@writ/kernel';
import { contextFromTraceparent, withSpan } from '@writ/telemetry';
import type { SupervisorContext } from '../../context.ts';
import {
  dueTerms,
  type HaltOrderKind,
  isDelayedByHalt,
  isHaltOrder,
  isOrderKind,
  isPermanent,
  type OrderKind,
  reasonOf,
  stepsFrom,
} from '../../domain/order/order-rules.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { delayedBy, haltCovering } from '../../store/halt/halts.ts';
import { findDueOrder, firstDueOrder, saveOrder } from '../../store/orders.ts';
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

const FAILURE_PAUSE_MS = 10;
/** Pause before an order that another replica drives is read again. */
const CLAIM_PAUSE_MS = 100;
/** Maximum back-off of a halt order, because the halt must be in force soon after all services are reachable. */
const HALT_RETRY_MAX_MS = 1_000;
/** Options of the transactions of halt orders: they overtake all others, and a full transaction queue accepts them. */
const URGENT = { urgent: true } as const;

/** One execution of a step. */
interface StepAttempt {
  readonly kind: OrderKind;
  /** The order, with the step that is recorded in the store. */
  readonly order: OrderRow;
  readonly step: string;
  readonly memo: Memo;
  /** The run, if it was just read; when omitted, the step reads it. */
  readonly run?: RunRow | undefined;
}

/**
 * How an attempt to drive an order ended. `must read`: the store must be read again, because the attempt failed and the
 * time of the next attempt is in the store, or because an earlier order of the key was driven instead. `claimed`:
 * another replica drives the key, or the store could not be read.
 */
type DriveOutcome = 'driven' | 'must read' | 'claimed';

type RunOrderKind = Exclude<OrderKind, HaltOrderKind>;

/** Executes one order from its recorded step; each step commits its changes with the progress of the order. */
export class OrderDriver {
  readonly #context: SupervisorContext;
  readonly #handlers: Readonly<Record<RunOrderKind, OrderHandler>>;
  readonly #halts: Readonly<Record<HaltOrderKind, HaltOrderHandler>>;
  #isStopped = false;

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

  /** Executes no further step. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Drives an order, unless another replica drives an order of the same key. */
  async drive(key: string, order: OrderRow): Promise<DriveOutcome> {
    const { store, telemetry, clock, config } = this.#context;
    if (!store.replicas.shared) return (await this.#drive(order)) ? 'driven' : 'must read';
    try {
      const claim = await store.replicas.claim(`orders of ${key}`);
      if (claim !== undefined) {
        try {
          // Since the order was read, another replica may have driven it, or placed an earlier order of the same run.
          const terms = dueTerms(config, clock.now());
          const runKey = order.kind === 'start_run' ? undefined : runOf(order);
          // Only an order of a halt has no run.
          const db = runOf(order) === undefined ? store.urgentDb : store.db;
          const [due, run] = await Promise.all([
            runKey === undefined
              ? findDueOrder(db, order, terms)
              : firstDueOrder(store.db, runKey, terms),
            this.#readRun(order),
          ]);
          if (due === undefined) return 'driven';
          const isDone = (await this.#drive(due, run)) && due.order_id === order.order_id;
          return isDone ? 'driven' : 'must read';
        } finally {
          await claim.release();
        }
      }
    } catch (error) {
      telemetry.log.warn({ err: error, order_id: order.order_id }, 'failed to claim an order');
    }
    await sleep(CLAIM_PAUSE_MS);
    return 'claimed';
  }

  /** Reads the run of an order; undefined for an order of a halt. */
  async #readRun(order: OrderRow): Promise<RunRow | undefined> {
    const key = runOf(order);
    return key && (await loadRun(this.#context.store.db, key));
  }

  /**
   * Drives an order in a span of the trace of its run; reads the run unless `known` is set. Returns false if the order
   * failed.
   */
  async #drive(order: OrderRow, known?: RunRow): Promise<boolean> {
    const { telemetry } = this.#context;
    const ids = { tenant: order.tenant, run_id: order.run_id, order_id: order.order_id };
    try {
      const run = known ?? (await this.#readRun(order));
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
      return true;
    } catch (error) {
      // The shutdown of a peer is not an error: the order is retried with another replica of the peer, or after the
      // peer restarts.
      const level = reasonOf(error) === 'DRAINING' ? 'info' : 'warn';
      telemetry.log[level](
        { ...ids, reason: reasonOf(error), ...(isWritError(error) ? {} : { err: error }) },
        `order ${order.kind} failed`,
      );
      // If the store is unreachable, the failure was not saved either, and without this pause the store would be read
      // in a busy loop.
      await sleep(FAILURE_PAUSE_MS);
      return false;
    }
  }

  /**
   * Executes the remaining steps; saves a failure before throwing it. The next attempt begins at the recorded step, so
   * it repeats the steps that ended without a commit, because the values that these steps passed on in memory are lost.
   */
  async #runSteps(order: OrderRow, run: RunRow | undefined): Promise<void> {
    const { kind } = order;
    if (!isOrderKind(kind)) throw new TypeError(`Unknown kind of order: ${kind}`);
    const memo: Memo = { events: [] };
    const steps = stepsFrom(kind, order.step);
    let recordedStep = order.step;
    for (const [index, step] of steps.entries()) {
      if (this.#isStopped) return;
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
        const failures = (recordedStep === order.step ? order.attempts : 0) + 1;
        await this.#recordFailure(attempt, failures, error);
        throw error;
      }
    }
  }

  /**
   * Executes one step and commits its changes with the progress of the order. Returns `over` when this replica has no
   * further step to execute, and `unchanged` when there was nothing to commit. If another replica drives the same
   * order, a step may run twice; the replica that commits first continues alone.
   */
  async #runStep(
    attempt: StepAttempt,
    next: string | undefined,
  ): Promise<'over' | 'committed' | 'unchanged'> {
    const { store, clock } = this.#context;
    const done = (await this.#perform(attempt)) ?? {};
    if (done.unchanged === true) return 'unchanged';
    const { over = false, commit, commitDelayMs = 0 } = done;
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
      isHaltOrder(attempt.kind)
        ? URGENT
        : { run: runOf(attempt.order), background: true, commitDelayMs },
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
      const halt = await haltCovering(store.db, {
        tenant: run.tenant,
        runId: run.run_id,
        instance,
      });
      if (halt !== undefined) throw delayedBy(halt);
    }
    return await this.#handlers[kind].steps[step]?.({ order, run, memo });
  }

  async #recordFailure(
    { kind, order, memo }: StepAttempt,
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
          attempts: failures,
          next_attempt_at: new Date(now.getTime() + backoffMs(failures, { baseMs, maxMs })),
          last_error: reasonOf(error),
        });
      },
      isHaltOrder(kind) ? URGENT : { run: runOf(order), background: true },
    );
  }
}

/** The run whose rows an order touches; undefined for an order of a halt. */
function runOf({ tenant, run_id: runId }: OrderRow): RunKey | undefined {
  return runId === '' ? undefined : { tenant, runId };
}

/** The progress of an order when this replica last read or wrote it. */
function progressOf({ order_id: orderId, step }: OrderRow) {
  return { orderId, step };
}

/** The reason code and the sentence of an error; only service errors have a sentence for people. */
function failureOf(error: unknown): OrderFailure {
  return { reason: reasonOf(error), detail: isWritError(error) ? error.message : undefined };
}
