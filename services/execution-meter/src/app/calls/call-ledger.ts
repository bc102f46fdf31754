import { freezesOver } from '@writ/freeze';
import { isWritError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import {
  type CallPlan,
  fittingOutput,
  holdFor,
  requirePrice,
} from '../../domain/calls/call-plan.ts';
import { isNearBudget } from '../../domain/ledger/near-budget.ts';
import { book } from '../../store/book.ts';
import { findCall, type StoredCall, saveCall } from '../../store/calls.ts';
import { countFailure } from '../../store/failures.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import {
  admitCaller,
  isPurged,
  requireSpendable,
  requireTab,
} from '../../store/require-spendable.ts';
import { insertResponse } from '../../store/responses.ts';
import { requireAllSlices, type SliceAccess } from '../../store/slices/slice-access.ts';
import type { StoredTab } from '../../store/tabs.ts';
import { bookingTransaction } from '../tabs/booking-transaction.ts';
import { isOwnedByPeer } from './call-owner.ts';
import {
  type AttemptEnd,
  type CallConclusion,
  type CallLookup,
  type EndedCall,
  eventScope,
  newCall,
  type OpenAttempt,
  type Opening,
  requireSameRequest,
  withEvent,
  withSpending,
} from './call-record.ts';
import type { CallRequest } from './call-request.ts';

/** The context of a transaction on one tab. */
export interface TabTransaction {
  readonly trx: MeterTransaction;
  readonly access: SliceAccess;
  readonly tab: StoredTab;
  readonly at: Date;
}

/** Rolls back the transaction of a call whose prompt tokens must be counted. */
class PromptNotCounted extends Error {}

/**
 * Time that is added to the time limit of the model and the maximum Retry-After to get the lifetime of a reservation,
 * in milliseconds.
 */
const EXPIRY_GRACE_MS = 120_000;

/** Transactions of model calls (EM-7): one before each attempt and one at the end. */
export class CallLedger {
  readonly #context: MeterContext;

  constructor(context: MeterContext) {
    this.#context = context;
  }

  /**
   * Reserves the first attempt of a call in this process and marks it as sent. If the store contains an unsettled
   * attempt of the call, because its process died or its outcome could not be committed, this attempt is settled with
   * its full hold as an estimate in the same commit.
   * @throws PreconditionError STALE_EPOCH, HALTED, FROZEN, TAB_CLOSED, PRICE_MISSING; NotFoundError
   *   TAB_NOT_FOUND; DeadlineError DEADLINE_EXCEEDED; InvalidRequestError CALL_ID_REUSED
   */
  begin(request: CallRequest, plan: CallPlan, { isNew, dead }: CallLookup): Promise<Opening> {
    return this.#transaction(request, async (trx, access, at) => {
      const [tab, known, freezes] = await Promise.all([
        requireTab(trx, request),
        isNew ? undefined : findCall(trx, request, request.callId),
        freezesOver(trx, request),
      ]);
      await admitCaller(trx, tab, request.epoch);
      if (known !== undefined) requireSameRequest(known, request);
      if (known?.state === 'answered' || known?.state === 'failed') {
        return { type: 'recorded', call: known };
      }
      const { replicas } = this.#context.store;
      if (isOwnedByPeer(known, replicas, dead)) return { type: 'owned_by_peer' };
      requireSpendable(tab, freezes, at);
      const tx = { trx, access, tab, at };
      if (known?.state !== 'running') return this.#open(tx, request, plan, known);
      return this.#openNext(tx, request, plan, await this.#expire(tx, known));
    });
  }

  /** Settles a failed attempt and opens the next attempt in one commit (EM-8). */
  retry(
    request: CallRequest,
    plan: CallPlan,
    last: OpenAttempt,
    end: AttemptEnd,
  ): Promise<Opening> {
    return this.#transaction(request, async (trx, access, at) => {
      const [tab, freezes] = await Promise.all([
        requireTab(trx, request),
        freezesOver(trx, request),
      ]);
      const tx = { trx, access, tab, at };
      const settled = await this.#settle(tx, last, end);
      const interrupted: StoredCall = { ...settled.call, state: 'interrupted' };
      try {
        requireSpendable(tab, freezes, at);
        requirePrice(settled.levels, plan);
      } catch (error) {
        if (!isWritError(error)) throw error;
        await saveCall(trx, request, interrupted, at);
        return { type: 'stopped', error, ended: { ...settled, call: interrupted } };
      }
      return this.#openNext(tx, request, plan, interrupted);
    });
  }

  /** Settles the last attempt and records the outcome (EM-7), without the answer if the run is purged. */
  end(last: OpenAttempt, conclusion: CallConclusion): Promise<EndedCall> {
    const { clock } = this.#context;
    const { tab } = last;
    const work = async (trx: MeterTransaction, access: SliceAccess): Promise<EndedCall> => {
      const at = clock.now();
      const { answer, failure } = conclusion;
      const [settled, mustPurge] = await Promise.all([
        this.#settle({ trx, access, tab, at }, last, conclusion),
        // Checked in the recording transaction, because another replica can record the end of the run.
        answer === undefined ? false : isPurged(trx, tab),
      ]);
      const call: StoredCall = {
        ...settled.call,
        state: answer !== undefined ? 'answered' : failure !== undefined ? 'failed' : 'interrupted',
        answer,
        failure,
      };
      const recorded = mustPurge ? { ...call, answer: undefined, purged: true } : call;
      await saveCall(trx, tab, recorded, at);
      if (conclusion.issued !== undefined) {
        await insertResponse(trx, tab, {
          ...conclusion.issued,
          ...last.call,
          spent: conclusion.spent.usage,
          at,
        });
      }
      if (failure !== undefined) await countFailure(trx, tab, failure.stopReason, call.callId);
      return { ...settled, call };
    };
    // The ids of an answer are stored per session, so a transaction of another run of the session can insert the same
    // ids; this transaction therefore waits for all transactions of the tenant.
    return bookingTransaction(this.#context, tab, work, {
      touchesTenant: conclusion.issued !== undefined,
    });
  }

  /** Settles the attempt of a dead process with its full hold as an estimate (EM-3). */
  async settleOrphan(tx: TabTransaction, call: StoredCall): Promise<void> {
    await saveCall(tx.trx, tx.tab, await this.#expire(tx, call), tx.at);
  }

  async #transaction(
    request: CallRequest,
    work: (trx: MeterTransaction, access: SliceAccess, at: Date) => Promise<Opening>,
  ): Promise<Opening> {
    const { clock } = this.#context;
    try {
      return await bookingTransaction(this.#context, request, (trx, access) =>
        work(trx, access, clock.now()),
      );
    } catch (error) {
      if (error instanceof PromptNotCounted) return { type: 'uncounted' };
      throw error;
    }
  }

  /**
   * Opens the next attempt of a call after this transaction has settled the previous attempt. Saves the call even if
   * the attempt is refused, because the call would otherwise stay `running`.
   */
  async #openNext(
    tx: TabTransaction,
    request: CallRequest,
    plan: CallPlan,
    interrupted: StoredCall,
  ): Promise<Opening> {
    const opening = await this.#open(tx, request, plan, interrupted);
    if (opening.type === 'refused') await saveCall(tx.trx, request, interrupted, tx.at);
    return opening;
  }

  async #open(
    { trx, access, tab, at }: TabTransaction,
    request: CallRequest,
    plan: CallPlan,
    before: StoredCall | undefined,
  ): Promise<Opening> {
    const { catalog, events, config } = this.#context;
    const attempt = (before?.attempts ?? 0) + 1;
    const expiryMs = plan.model.timeoutMs + config.backoff.maxRetryAfterMs + EXPIRY_GRACE_MS;
    let fits = 0n;
    let hold = holdFor(plan, plan.outputTokens);
    const booked = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      access,
      id: { kind: 'call', callId: request.callId, attempt },
      known: 'none',
      at,
      notes: {
        model: request.model,
        requestDigest: request.requestDigest,
        expiresAt: new Date(at.getTime() + expiryMs),
      },
      events: (levels) => {
        requirePrice(levels, plan);
        fits = fittingOutput(levels, plan);
        if (fits < plan.outputTokens) {
          requireAllSlices(access, levels);
          if (!plan.counted) throw new PromptNotCounted();
        }
        if (request.fit === 'shrink' && fits > 0n) hold = holdFor(plan, fits);
        return [{ type: 'reserve', kind: 'call', hold }, { type: 'sent' }];
      },
    });
    const call: StoredCall = {
      ...(before ?? newCall(request, at)),
      state: 'running',
      attempts: attempt,
      owner: this.#context.store.replicas.id,
      fittedOutput: hold.usage.output,
      traceparent: request.traceparent,
    };
    const scope = { ...eventScope(tab, call), after: request.after };
    if (booked.refusal !== undefined) {
      const { dimension } = booked.refusal;
      const event = await events.budgetExhausted({ trx, at }, scope, booked.refusal, 'refused');
      await countFailure(trx, tab, `budget_exhausted:${dimension}`, request.callId);
      const refused = withEvent(before ?? newCall(request, at), event);
      const ended = { tab, call: refused, levels: booked.levels };
      return { type: 'refused', breach: booked.refusal, fits, ended };
    }
    const started = withEvent(call, await events.llmStarted({ trx, at }, scope));
    await saveCall(trx, tab, started, undefined);
    const startedMs = this.#context.clock.monotonicMs();
    return { type: 'opened', open: { tab, call: started, attempt, hold, startedMs } };
  }

  async #settle(
    { trx, access, tab, at }: TabTransaction,
    { call, attempt, startedMs }: OpenAttempt,
    { spent, status, warnings }: AttemptEnd,
  ): Promise<EndedCall> {
    const { catalog, clock, events } = this.#context;
    const booked = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      access,
      id: { kind: 'call', callId: call.callId, attempt },
      events: [{ type: 'settle', spent }],
      at,
    });
    const { levels, exceeded } = booked;
    const scope = eventScope(tab, call);
    await events.budgetThresholds({ trx, at }, scope, booked);
    const durationMs = clock.monotonicMs() - startedMs;
    const ended = await events.llmEnded({ trx, at }, scope, { status, durationMs, spent });
    let after = withEvent(withSpending(call, spent), ended);
    if (exceeded !== undefined) {
      after = withEvent(
        after,
        await events.budgetExhausted({ trx, at }, scope, exceeded, 'settled'),
      );
    }
    if (levels.some((balance) => isNearBudget(balance, tab.near)))
      events.nearBudget({ trx, at }, tab.tenant);
    return { tab, levels, call: { ...after, warnings: [...call.warnings, ...warnings] } };
  }

  async #expire({ trx, access, tab, at }: TabTransaction, call: StoredCall): Promise<StoredCall> {
    const { catalog, events } = this.#context;
    const booked = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      access,
      id: { kind: 'call', callId: call.callId, attempt: call.attempts },
      events: [{ type: 'expire' }],
      at,
    });
    const { entry } = booked;
    const after: StoredCall = { ...call, state: 'interrupted' };
    if (entry === undefined || !entry.entry.byExpiry) return after;
    const { spent } = entry.entry;
    await events.budgetThresholds({ trx, at }, eventScope(tab, call), booked);
    const durationMs = at.getTime() - call.startedAt.getTime();
    const end = { status: 'interrupted', durationMs, spent };
    const event = await events.llmEnded({ trx, at }, eventScope(tab, call), end);
    return withEvent(withSpending(after, spent), event);
  }
}
