import { isWritError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { type CallPlan, fittingOutput, holdFor, requirePrice } from '../../domain/catalog/plan.ts';
import { isNearBudget } from '../../domain/ledger/balance.ts';
import { admitCaller, requireSpendable, requireTab } from '../../store/admit.ts';
import { book } from '../../store/book.ts';
import { findCall, type StoredCall, saveCall } from '../../store/calls.ts';
import { countFailure } from '../../store/failures.ts';
import { isPurged } from '../../store/freezes.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import type { StoredTab } from '../../store/tabs.ts';
import type { CallAsk } from './call-ask.ts';
import type {
  AttemptEnd,
  CallConclusion,
  EndedCall,
  OpenAttempt,
  Opening,
} from './call-outcomes.ts';
import { newCall, refuseReuse, scopeOf, withSpending } from './call-record.ts';
import { isElsewhere } from './elsewhere.ts';

/** Thrown inside of a transaction to undo it. */
class Uncounted extends Error {}

/** Grace for the answer to be settled after an attempt's time is over. */
const EXPIRY_GRACE_MS = 120_000;

/** The commits of model calls (EM-7): one before each attempt, one at the end. */
export class CallBooks {
  readonly #context: MeterContext;

  constructor(context: MeterContext) {
    this.#context = context;
  }

  /**
   * Reserves and marks as sent the first attempt of a call in this process. What a dead process left
   * behind of it is settled in full, estimated, in the same commit.
   * @param gone replicas that have ended; what any other is making is left to it
   * @throws PreconditionError STALE_EPOCH, HALTED, FROZEN, TAB_CLOSED, PRICE_MISSING; NotFoundError
   *   TAB_NOT_FOUND; DeadlineError DEADLINE_EXCEEDED; InvalidRequestError CALL_ID_REUSED
   */
  begin(ask: CallAsk, plan: CallPlan, gone: ReadonlySet<string>): Promise<Opening> {
    return this.#opening(async (trx, at) => {
      const tab = await requireTab(trx, ask);
      await admitCaller(trx, tab, ask.epoch);
      const known = await findCall(trx, ask, ask.callId);
      if (known !== undefined) refuseReuse(known, ask);
      if (known?.state === 'answered' || known?.state === 'failed') {
        return { type: 'recorded', call: known };
      }
      if (isElsewhere(known, this.#context.store.replicas, gone)) return { type: 'elsewhere' };
      await requireSpendable(trx, tab, at);
      const before = known?.state === 'running' ? await this.#abandon(trx, tab, known, at) : known;
      return this.#open(trx, tab, ask, plan, before, at);
    });
  }

  /** Settles an attempt that failed and opens the next one, in one commit (EM-8). */
  retry(ask: CallAsk, plan: CallPlan, last: OpenAttempt, end: AttemptEnd): Promise<Opening> {
    return this.#opening(async (trx, at) => {
      const tab = await requireTab(trx, ask);
      const settled = await this.#settle(trx, { ...last, tab }, end, at);
      const interrupted: StoredCall = { ...settled.call, state: 'interrupted' };
      try {
        await requireSpendable(trx, tab, at);
      } catch (error) {
        if (!isWritError(error)) throw error;
        await saveCall(trx, ask, interrupted, at);
        return { type: 'stopped', error, ended: { ...settled, call: interrupted } };
      }
      const opening = await this.#open(trx, tab, ask, plan, interrupted, at);
      if (opening.type === 'refused') await saveCall(trx, ask, interrupted, at);
      return opening;
    });
  }

  /** Settles the last attempt and records the outcome (EM-7); no answer once its run is over and not kept. */
  end(last: OpenAttempt, conclusion: CallConclusion): Promise<EndedCall> {
    const { store, clock } = this.#context;
    return store.transaction(async (trx) => {
      const at = clock.now();
      const { answer, failure } = conclusion;
      const settled = await this.#settle(trx, last, conclusion, at);
      const call: StoredCall = {
        ...settled.call,
        state: answer !== undefined ? 'answered' : failure !== undefined ? 'failed' : 'interrupted',
        answer,
        failure,
      };
      // Here, where no freeze can come between: whoever ordered it may be another replica.
      const isForgotten = answer !== undefined && (await isPurged(trx, last.tab));
      const kept = isForgotten ? { ...call, answer: undefined, purged: true } : call;
      await saveCall(trx, last.tab, kept, at);
      if (failure !== undefined) {
        await countFailure(trx, last.tab, failure.stopReason, call.callId);
      }
      return { ...settled, call };
    });
  }

  /** Settles in full, estimated, what a dead process left of a call (EM-3). */
  async abandon(
    trx: MeterTransaction,
    tab: StoredTab,
    call: StoredCall,
    at: Date,
  ): Promise<StoredCall> {
    const after = await this.#abandon(trx, tab, call, at);
    await saveCall(trx, tab, after, at);
    return after;
  }

  async #opening(work: (trx: MeterTransaction, at: Date) => Promise<Opening>): Promise<Opening> {
    const { store, clock } = this.#context;
    try {
      return await store.transaction((trx) => work(trx, clock.now()));
    } catch (error) {
      if (error instanceof Uncounted) return { type: 'uncounted' };
      throw error;
    }
  }

  async #open(
    trx: MeterTransaction,
    tab: StoredTab,
    ask: CallAsk,
    plan: CallPlan,
    before: StoredCall | undefined,
    at: Date,
  ): Promise<Opening> {
    const { catalog, events, config } = this.#context;
    const attempt = (before?.attempts ?? 0) + 1;
    const waitMs = plan.model.timeoutMs + config.backOff.maxAskedMs + EXPIRY_GRACE_MS;
    let fits = 0n;
    let hold = holdFor(plan, plan.outputTokens);
    const booked = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      id: { kind: 'call', callId: ask.callId, attempt },
      known: 'none',
      at,
      notes: {
        model: ask.model,
        requestDigest: ask.requestDigest,
        expiresAt: new Date(at.getTime() + waitMs),
      },
      events: (levels) => {
        requirePrice(levels, plan);
        fits = fittingOutput(levels, plan);
        if (fits < plan.outputTokens && !plan.counted) throw new Uncounted();
        if (ask.fit === 'shrink' && fits > 0n) hold = holdFor(plan, fits);
        return [{ type: 'reserve', kind: 'call', hold }, { type: 'sent' }];
      },
    });
    const call: StoredCall = {
      ...(before ?? newCall(ask, at)),
      state: 'running',
      attempts: attempt,
      owner: this.#context.store.replicas.id,
      fittedOutput: hold.usage.output,
      traceparent: ask.traceparent,
    };
    const scope = scopeOf(tab, call);
    if (booked.refusal !== undefined) {
      const { dimension } = booked.refusal;
      await events.budgetExhausted(trx, scope, booked.refusal, at, 'refused');
      await countFailure(trx, tab, `budget_exhausted:${dimension}`, ask.callId);
      const ended = { tab, call: before ?? newCall(ask, at), levels: booked.levels };
      return { type: 'refused', breach: booked.refusal, fits, ended };
    }
    await saveCall(trx, tab, call, undefined);
    await events.llmStarted(trx, scope, at);
    return { type: 'opened', open: { tab, call, attempt, hold, startedAt: at } };
  }

  async #settle(
    trx: MeterTransaction,
    { tab, call, attempt, startedAt }: OpenAttempt,
    { spent, status, warnings }: AttemptEnd,
    at: Date,
  ): Promise<EndedCall> {
    const { catalog, events } = this.#context;
    const { levels, exceeded } = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      id: { kind: 'call', callId: call.callId, attempt },
      events: [{ type: 'settle', spent }],
      at,
    });
    const scope = scopeOf(tab, call);
    const durationMs = at.getTime() - startedAt.getTime();
    await events.llmEnded(trx, scope, { status, durationMs, spent }, at);
    if (exceeded !== undefined) {
      await events.budgetExhausted(trx, scope, exceeded, at, 'settled');
    }
    if (levels.some((balance) => isNearBudget(balance, tab.near))) events.nearBudget(tab.tenant);
    const after = withSpending(call, spent);
    return { tab, levels, call: { ...after, warnings: [...call.warnings, ...warnings] } };
  }

  async #abandon(
    trx: MeterTransaction,
    tab: StoredTab,
    call: StoredCall,
    at: Date,
  ): Promise<StoredCall> {
    const { catalog, events } = this.#context;
    const { entry } = await book(trx, {
      tab,
      tenantCaps: catalog.tenantCaps(tab.tenant),
      id: { kind: 'call', callId: call.callId, attempt: call.attempts },
      events: [{ type: 'expire' }],
      at,
    });
    const after: StoredCall = { ...call, state: 'interrupted' };
    if (entry === undefined || !entry.entry.byExpiry) return after;
    const { spent } = entry.entry;
    const durationMs = at.getTime() - call.startedAt.getTime();
    await events.llmEnded(
      trx,
      scopeOf(tab, call),
      { status: 'interrupted', durationMs, spent },
      at,
    );
    return withSpending(after, spent);
  }
}
