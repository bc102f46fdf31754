import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { UsageSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import { derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_REQUEST_MODEL,
  ATTR_GEN_AI_TOKEN_TYPE,
  type Telemetry,
  trace,
} from '@writ/telemetry';
import { dayOf } from './domain/ledger/balance.ts';
import type { Breach } from './domain/ledger/exceeded-cap.ts';
import type { Spending } from './domain/ledger/spending.ts';
import { reachedThresholds } from './domain/ledger/thresholds.ts';
import type { Booked } from './store/book.ts';
import { rowIds } from './store/level-ids.ts';
import type { MeterTransaction, MeterTx } from './store/meter-store.ts';
import type { StoredTab } from './store/tabs.ts';
import { LEVELS } from './wire/tab.ts';

type EventName = 'LLM_START' | 'LLM_END' | 'BUDGET_EXHAUSTED' | 'BUDGET_THRESHOLD';

type EventFields = Partial<
  Pick<
    HookEvent,
    | 'status'
    | 'duration'
    | 'costNanoUsd'
    | 'estimated'
    | 'dimension'
    | 'eventId'
    | 'thresholdPercent'
    | 'budgetLevel'
  > & {
    usage: MessageInitShape<typeof UsageSchema>;
  }
>;

/** Scope of a meter event. */
export interface EventScope {
  readonly tab: Pick<StoredTab, 'tenant' | 'runId' | 'sessionId' | 'agentName' | 'instance'>;
  /** Id of the call or of the request that caused the booking. */
  readonly callId: string;
  readonly step: number;
  /** Catalog alias; empty for events without a model. */
  readonly model: string;
  /** From 1 for model calls, else 0. */
  readonly attempt: number;
  /** Ids of events of the agent that precede this event in its timeline; default: none. */
  readonly after?: readonly string[];
  readonly traceparent: string;
}

/**
 * All hook events of the meter. Each event is emitted once, in the transaction of the change that the event reports
 * (HK-1, HK-2). The methods for model calls return the encoded event, which `finished` also contains.
 */
export interface MeterEvents {
  /** Emits LLM_START for an attempt of a model call that is reserved and about to be sent. */
  llmStarted(tx: MeterTx, scope: EventScope): Promise<Uint8Array>;
  /** Emits LLM_END for a settled attempt; `status` is `ok`, `interrupted` or a stop reason. */
  llmEnded(
    tx: MeterTx,
    scope: EventScope,
    end: { readonly status: string; readonly durationMs: number; readonly spent: Spending },
  ): Promise<Uint8Array>;
  /**
   * Emits BUDGET_EXHAUSTED: a cap has refused a reservation (`refused`), or the amount that was settled or consumed
   * exceeds a cap. Each cause has its own event id, because a refused call can be repeated and settled after its cap is
   * raised.
   */
  budgetExhausted(
    tx: MeterTx,
    scope: EventScope,
    breach: Breach,
    cause: 'refused' | 'settled' | 'consumed',
  ): Promise<Uint8Array>;
  /**
   * Emits BUDGET_THRESHOLD for each cap of which a settlement has reached a threshold, with the highest threshold that
   * the settlement reached; at most once for each cap and threshold.
   */
  budgetThresholds(
    tx: MeterTx,
    scope: EventScope,
    settled: Pick<Booked, 'before' | 'levels' | 'entry'>,
  ): Promise<void>;
  /** Counts a settled attempt of a model call after which a level is near its cap (EM-5); emits no event. */
  nearBudget(tx: MeterTx, tenant: string): void;
  /** Whether the transaction wrote an event to the outbox. */
  hasEvents(trx: MeterTransaction): boolean;
}

/** Creates the meter's events. */
export function createMeterEvents(telemetry: Telemetry, percents: readonly number[]): MeterEvents {
  const withEvents = new WeakSet<MeterTransaction>();
  const emit = async (
    { trx, at }: MeterTx,
    scope: EventScope,
    name: EventName,
    fields: EventFields,
  ): Promise<Uint8Array> => {
    const { tab, callId, step, model, attempt, after = [], traceparent } = scope;
    const { tenant, runId, sessionId, instance } = tab;
    const eventId = fields.eventId ?? eventIdOf(scope, name);
    const event = create(HookEventSchema, {
      type: HookEventType[name],
      emitter: 'execution-meter',
      eventTime: timestampFromDate(at),
      tenant,
      runId,
      sessionId,
      agent: { name: tab.agentName, instance },
      step,
      callId,
      traceparent,
      model,
      attempt,
      after: [...after],
      ...fields,
      eventId,
    });
    withEvents.add(trx);
    const payload = toBinary(HookEventSchema, event);
    await appendOutbox(
      trx,
      {
        eventId,
        subject: hookSubject({ tenant, runId, agent: instance, event: name }),
        payload,
        headers: traceparent === '' ? {} : { traceparent },
      },
      at,
    );
    const ids = { run_id: runId, agent: instance, call_id: callId, attempt };
    afterCommit(trx, () => telemetry.log.info({ tenant, ...ids, event_id: eventId }, name));
    return payload;
  };
  const count = countAtCommit(telemetry);
  return {
    hasEvents: (trx) => withEvents.has(trx),
    llmStarted: (tx, scope) => emit(tx, scope, 'LLM_START', { status: 'ok' }),
    llmEnded: (tx, scope, { status, durationMs, spent }) => {
      const labels = { 'writ.tenant': scope.tab.tenant, [ATTR_GEN_AI_REQUEST_MODEL]: scope.model };
      const { input, output } = spent.usage;
      count(tx.trx, 'tokens', { ...labels, [ATTR_GEN_AI_TOKEN_TYPE]: 'input' }, Number(input));
      count(tx.trx, 'tokens', { ...labels, [ATTR_GEN_AI_TOKEN_TYPE]: 'output' }, Number(output));
      count(tx.trx, 'cost', labels, Number(spent.cost));
      return emit(tx, scope, 'LLM_END', {
        status,
        duration: durationFromMs(Math.max(0, Math.round(durationMs))),
        usage: {
          inputTokens: spent.usage.input,
          cachedInputTokens: spent.usage.cachedInput,
          cacheWriteInputTokens: spent.usage.cacheWrite,
          outputTokens: spent.usage.output,
          reasoningTokens: spent.usage.reasoning,
        },
        costNanoUsd: spent.cost,
        estimated: spent.estimated,
      });
    },
    async budgetThresholds(tx, scope, { before, levels, entry }) {
      // A settlement after midnight is booked to the day of its reservation.
      const day = entry?.day ?? dayOf(tx.at);
      for (const { level, dimension, percent, limit } of reachedThresholds(
        before,
        levels,
        percents,
      )) {
        const levelId = rowIds({ ...scope.tab, day })[level];
        const threshold = [levelId, dimension, String(limit), String(percent)];
        await emit(tx, scope, 'BUDGET_THRESHOLD', {
          eventId: derivedId('evt', ...threshold, 'BUDGET_THRESHOLD'),
          dimension,
          thresholdPercent: percent,
          budgetLevel: LEVELS[level],
          status: 'ok',
        });
      }
    },
    nearBudget: ({ trx }, tenant) => count(trx, 'nearBudget', { 'writ.tenant': tenant }),
    budgetExhausted: (tx, scope, { dimension, level }, cause) => {
      const labels = { 'writ.tenant': scope.tab.tenant, 'writ.dimension': dimension };
      if (cause === 'refused') count(tx.trx, 'budgetRefusals', { ...labels, 'writ.level': level });
      else count(tx.trx, 'debts', labels);
      trace.getActiveSpan()?.setAttribute(ATTR_ERROR_TYPE, 'BUDGET_EXHAUSTED');
      return emit(tx, scope, 'BUDGET_EXHAUSTED', {
        ...(cause !== 'refused' && { eventId: eventIdOf(scope, 'BUDGET_EXHAUSTED', cause) }),
        dimension,
        status: `budget_exhausted:${dimension} (${level})`,
      });
    },
  };
}

/** Returns the id of an event, which is the same if the event is emitted again (HK-1). */
function eventIdOf(
  { tab: { runId, instance }, callId, attempt }: EventScope,
  name: EventName,
  ...cause: readonly string[]
): string {
  return derivedId('evt', runId, instance, callId, name, String(attempt), ...cause);
}
