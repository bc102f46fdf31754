import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type AgentRef, derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import {
  ATTR_WRIT_ACTION_KIND,
  ATTR_WRIT_DECISION,
  ATTR_WRIT_EXECUTED_FROM,
  ATTR_WRIT_RULE,
  type Telemetry,
  traceparentOf,
} from '@writ/telemetry';
import type { Notify } from './app/notify/notify.ts';
import { markReview, traceWait } from './spans.ts';
import { noteChange } from './store/change/commit-notes.ts';
import type { DecisionRow } from './store/review/decisions.ts';
import { appendTimeline } from './store/run/timeline.ts';
import type { SupervisorTransaction } from './store/supervisor-store.ts';
import {
  type EventFields,
  type EventScope,
  endFields,
  haltFields,
  type ReceiptedCall,
  type RunEnd,
  toolEndFields,
  toolStartFields,
} from './wire/hook-fields.ts';
import { encodeHook } from './wire/timeline.ts';

type EventName =
  | 'RUN_START'
  | 'RUN_END'
  | 'HANDOFF'
  | 'APPROVAL_REQUESTED'
  | 'APPROVAL_DECIDED'
  | 'HALTED'
  | 'HALT_LIFTED'
  | 'BUDGET_CHANGED'
  | 'TOOL_START'
  | 'TOOL_END';

/** The hook events of the supervisor, each emitted in the transaction of its cause (HK-1, HK-2). */
export interface SupervisorEvents {
  /** A run was accepted. */
  runStarted(trx: SupervisorTransaction, scope: EventScope, at: Date): Promise<void>;
  /** A run reached its terminal state. */
  runEnded(trx: SupervisorTransaction, scope: EventScope, end: RunEnd, at: Date): Promise<void>;
  /** A child has a slot and a tab: emits RUN_START for the child in the run of its root. */
  childStarted(trx: SupervisorTransaction, scope: EventScope, at: Date): Promise<void>;
  /** A child ended. */
  childEnded(trx: SupervisorTransaction, scope: EventScope, end: RunEnd, at: Date): Promise<void>;
  /** A delegation was approved and its child has a slot. */
  handedOff(
    trx: SupervisorTransaction,
    scope: EventScope,
    child: AgentRef,
    at: Date,
  ): Promise<void>;
  /** An action needs an approval. */
  approvalRequested(
    trx: SupervisorTransaction,
    scope: EventScope,
    approval: { readonly approvalId: string; readonly reason: string; readonly toolName?: string },
    at: Date,
  ): Promise<void>;
  /**
   * An approval was decided, expired, or was withdrawn by its agent; `status` is the state of the approval. The time
   * from `waitedFor.since` to `at` becomes a span of the run.
   */
  approvalDecided(
    trx: SupervisorTransaction,
    scope: EventScope,
    approval: {
      readonly approvalId: string;
      readonly status: string;
      readonly toolName?: string;
      readonly waitedFor: { readonly since: Date; readonly approver: string | null };
    },
    at: Date,
  ): Promise<void>;
  /** A halt is enforced in a run. */
  halted(trx: SupervisorTransaction, scope: EventScope, haltId: string, at: Date): Promise<void>;
  /** The caps of a run were set by the request `scope.callId`, and the meter enforces them. */
  budgetChanged(trx: SupervisorTransaction, scope: EventScope, at: Date): Promise<void>;
  /** A halt is lifted in a run. */
  haltLifted(
    trx: SupervisorTransaction,
    scope: EventScope,
    haltId: string,
    at: Date,
  ): Promise<void>;
  /**
   * A call started, according to its receipt (HK-1). The event is published if the gateway does not publish tool events
   * itself; otherwise it is only appended to the timeline, which may already contain the event of the gateway.
   */
  toolStarted(
    trx: SupervisorTransaction,
    scope: EventScope,
    call: ReceiptedCall,
    at: Date,
  ): Promise<void>;
  /** A call ended or was refused, according to its receipt; see {@link toolStarted}. */
  toolEnded(
    trx: SupervisorTransaction,
    scope: EventScope,
    call: ReceiptedCall,
    at: Date,
  ): Promise<void>;
  /** A proposal was decided: sets span attributes and increments counters. The timeline entry is written separately. */
  decided(trx: SupervisorTransaction, row: DecisionRow, actionKind: string): void;
  /** A writ was signed. */
  writMinted(trx: SupervisorTransaction, executedFrom: string): void;
  /** A halt of a tenant, or of everything, is in force or was lifted; the event belongs to no run. */
  scopeHalt(
    trx: SupervisorTransaction,
    name: 'HALTED' | 'HALT_LIFTED',
    halt: { readonly haltId: string; readonly tenant: string | undefined },
    at: Date,
  ): Promise<void>;
  /** A checkpoint of the audit chain of a tenant was signed; the event belongs to no run (SV-8). */
  auditCheckpoint(
    trx: SupervisorTransaction,
    checkpoint: {
      readonly tenant: string;
      readonly number: number;
      readonly count: number;
      readonly signed: string;
    },
    at: Date,
  ): Promise<void>;
}

/** Appends to the outbox and wakes its relay after the commit. */
async function publish(
  trx: SupervisorTransaction,
  ...message: DropFirst<Parameters<typeof appendOutbox>>
): Promise<void> {
  noteChange(trx, 'outbox');
  await appendOutbox(trx, ...message);
}

type DropFirst<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

/** Creates the supervisor's events. */
export function createSupervisorEvents(
  telemetry: Telemetry,
  notify: Notify = async () => undefined,
): SupervisorEvents {
  const emit = emitterOf(telemetry, notify);
  const emitOutsideRuns = emitterOutsideRuns(telemetry);
  const count = countAtCommit(telemetry);
  return {
    runStarted: (trx, scope, at) => {
      count(trx, 'runsStarted', { 'writ.tenant': scope.run.tenant });
      return emit(trx, scope, 'RUN_START', { status: 'ok' }, at);
    },
    runEnded: (trx, scope, end, at) => {
      const { stopReason } = end;
      count(trx, 'runs', { 'writ.tenant': scope.run.tenant, 'writ.stop_reason': stopReason });
      return emit(trx, scope, 'RUN_END', endFields(end), at);
    },
    childStarted: (trx, scope, at) => emit(trx, scope, 'RUN_START', { status: 'ok' }, at),
    childEnded: (trx, scope, end, at) => emit(trx, scope, 'RUN_END', endFields(end), at),
    handedOff: (trx, scope, otherAgent, at) =>
      emit(trx, scope, 'HANDOFF', { status: 'ok', otherAgent }, at),
    approvalRequested: (trx, scope, { approvalId, reason, toolName = '' }, at) => {
      count(trx, 'approvalsOpened', { 'writ.tenant': scope.run.tenant });
      return emit(trx, scope, 'APPROVAL_REQUESTED', { approvalId, status: reason, toolName }, at);
    },
    approvalDecided: (trx, scope, { approvalId, status, toolName = '', waitedFor }, at) => {
      traceWait(telemetry, trx, { scope, approvalId, status, toolName, ...waitedFor, at });
      count(trx, 'approvalsDecided', { 'writ.tenant': scope.run.tenant, 'writ.state': status });
      return emit(trx, scope, 'APPROVAL_DECIDED', { approvalId, status, toolName }, at);
    },
    halted: (trx, scope, haltId, at) => {
      count(trx, 'halts');
      return emit(trx, scope, 'HALTED', haltFields('HALTED', haltId), at);
    },
    haltLifted: (trx, scope, haltId, at) =>
      emit(trx, scope, 'HALT_LIFTED', haltFields('HALT_LIFTED', haltId), at),
    budgetChanged: (trx, scope, at) => emit(trx, scope, 'BUDGET_CHANGED', { status: 'ok' }, at),
    decided: (trx, row, actionKind) => {
      markReview(telemetry, row, actionKind);
      count(trx, 'reviews', {
        'writ.tenant': row.tenant,
        [ATTR_WRIT_DECISION]: row.verdict,
        [ATTR_WRIT_RULE]: row.rule_id,
        [ATTR_WRIT_ACTION_KIND]: actionKind,
      });
    },
    writMinted: (trx, executedFrom) =>
      count(trx, 'writs', { [ATTR_WRIT_EXECUTED_FROM]: executedFrom }),
    toolStarted: (trx, scope, call, at) =>
      emit(trx, scope, 'TOOL_START', toolStartFields(call, at), at),
    toolEnded: (trx, scope, call, at) => emit(trx, scope, 'TOOL_END', toolEndFields(call, at), at),
    async scopeHalt(trx, name, { haltId, tenant }, at) {
      await emitOutsideRuns(trx, {
        name,
        eventId: derivedId('evt', haltId, name),
        tenant,
        fields: { ...haltFields(name, haltId), traceparent: traceparentOf() ?? '' },
        logged: { halt_id: haltId },
        at,
      });
    },
    async auditCheckpoint(trx, { tenant, number, count: records, signed }, at) {
      const name = 'AUDIT_CHECKPOINT';
      await emitOutsideRuns(trx, {
        name,
        // The id depends on the signature, so that two checkpoints with the same number have different event ids.
        eventId: derivedId('evt', tenant, signed, name),
        tenant,
        fields: {
          status: 'ok',
          auditCheckpoint: { number: BigInt(number), count: BigInt(records), signed },
        },
        logged: { checkpoint: number, records },
        at,
      });
    },
  };
}

/** Emits an event of a run. */
function emitterOf(telemetry: Telemetry, notify: Notify) {
  return async (
    trx: SupervisorTransaction,
    scope: EventScope,
    name: EventName,
    fields: EventFields,
    at: Date,
  ): Promise<void> => {
    const { run, agent, step = 0, callId = '' } = scope;
    const traceparent = traceparentOf() ?? run.traceparent;
    const eventId = derivedId(
      'evt',
      run.run_id,
      agent.instance,
      // A call has a second approval when its outcome is unknown, so the approval id distinguishes the events.
      fields.approvalId ?? fields.haltId ?? callId,
      name,
    );
    const event = create(HookEventSchema, {
      eventId,
      type: HookEventType[name],
      emitter: 'supervisor',
      eventTime: timestampFromDate(at),
      tenant: run.tenant,
      runId: run.run_id,
      sessionId: run.session_id,
      agent,
      step,
      callId,
      traceparent,
      ...fields,
    });
    // Appended here, not by the consumer, so that RUN_END precedes the result that ends a watch.
    await appendTimeline(
      trx,
      { tenant: run.tenant, runId: run.run_id, eventId, entry: encodeHook(event) },
      at,
    );
    if (event.emitter !== 'supervisor') return;
    // The order of a halt records its notification once, after every service has confirmed the halt; the runs are
    // parked before that.
    if (name !== 'HALTED') await notify(trx, event, at);
    await publish(
      trx,
      {
        eventId,
        subject: hookSubject({
          tenant: run.tenant,
          runId: run.run_id,
          agent: agent.instance,
          event: name,
        }),
        payload: toBinary(HookEventSchema, event),
        headers: { traceparent },
      },
      at,
    );
    const ids = { run_id: run.run_id, agent: agent.instance, event_id: eventId };
    afterCommit(trx, () => telemetry.log.info({ tenant: run.tenant, ...ids }, name));
  };
}

/** An event that belongs to no run. */
interface EventOutsideRuns {
  readonly name: 'HALTED' | 'HALT_LIFTED' | 'AUDIT_CHECKPOINT';
  readonly eventId: string;
  /** Undefined for all tenants. */
  readonly tenant: string | undefined;
  readonly fields: MessageInitShape<typeof HookEventSchema>;
  /** Further fields of the log line. */
  readonly logged: Readonly<Record<string, unknown>>;
  readonly at: Date;
}

/** Emits an event that belongs to no run. */
function emitterOutsideRuns({ log }: Telemetry) {
  return async (trx: SupervisorTransaction, event: EventOutsideRuns): Promise<void> => {
    const { name, eventId, tenant, fields, logged, at } = event;
    const message = create(HookEventSchema, {
      eventId,
      type: HookEventType[name],
      emitter: 'supervisor',
      eventTime: timestampFromDate(at),
      tenant: tenant ?? '',
      ...fields,
    });
    const payload = toBinary(HookEventSchema, message);
    await publish(trx, { eventId, subject: hookSubject({ tenant, event: name }), payload }, at);
    afterCommit(trx, () => log.info({ tenant, ...logged, event_id: eventId }, name));
  };
}
