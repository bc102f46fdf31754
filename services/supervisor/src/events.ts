import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { UsageSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import { type AgentRef, derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import {
  ATTR_WRIT_ACTION_KIND,
  ATTR_WRIT_AGENT,
  ATTR_WRIT_APPROVAL_ID,
  ATTR_WRIT_APPROVAL_STATE,
  ATTR_WRIT_APPROVER,
  ATTR_WRIT_CALL_ID,
  ATTR_WRIT_DECISION,
  ATTR_WRIT_DECISION_ID,
  ATTR_WRIT_DECISION_REASON,
  ATTR_WRIT_EXECUTED_FROM,
  ATTR_WRIT_POLICY_VERSION,
  ATTR_WRIT_RULE,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_TENANT,
  ATTR_WRIT_TOOL,
  contextFromTraceparent,
  type Telemetry,
  trace,
  traceparentOf,
} from '@writ/telemetry';
import type { Receipt } from './domain/facts/receipt.ts';
import type { RunUsage } from './domain/result/run-usage.ts';
import { noteChange } from './store/change/commit-notes.ts';
import type { DecisionRow } from './store/review/decisions.ts';
import type { RunRow } from './store/run/runs.ts';
import { appendTimeline } from './store/run/timeline.ts';
import type { SupervisorTransaction } from './store/supervisor-store.ts';
import { encodeHook } from './wire/timeline.ts';

type EventName =
  | 'RUN_START'
  | 'RUN_END'
  | 'HANDOFF'
  | 'APPROVAL_REQUESTED'
  | 'APPROVAL_DECIDED'
  | 'HALTED'
  | 'HALT_LIFTED'
  | 'TOOL_START'
  | 'TOOL_END';

type EventFields = Partial<
  Pick<
    HookEvent,
    | 'status'
    | 'costNanoUsd'
    | 'estimated'
    | 'approvalId'
    | 'haltId'
    | 'toolName'
    | 'argsSha256'
    | 'eventTime'
    | 'duration'
    | 'emitter'
  > & {
    usage: MessageInitShape<typeof UsageSchema>;
    otherAgent: AgentRef;
  }
>;

/** The run, agent and call of an event. */
export interface EventScope {
  readonly run: Pick<RunRow, 'tenant' | 'run_id' | 'session_id' | 'traceparent'>;
  readonly agent: AgentRef;
  readonly step?: number;
  readonly callId?: string;
}

/** The fields of a receipt that tool events contain. */
type ReceiptedCall = Pick<
  Receipt,
  'tool' | 'stopReason' | 'argsSha256' | 'startedAt' | 'endedAt'
> & {
  /** Whether the gateway publishes the event itself. */
  readonly isPublished: boolean;
};

/** The hook events of the supervisor, each emitted in the transaction of its cause (HK-1, HK-2). */
export interface SupervisorEvents {
  /** A run was accepted. */
  runStarted(trx: SupervisorTransaction, scope: EventScope, at: Date): Promise<void>;
  /** A run reached its terminal state. */
  runEnded(
    trx: SupervisorTransaction,
    scope: EventScope,
    end: { readonly stopReason: string; readonly usage: RunUsage },
    at: Date,
  ): Promise<void>;
  /** A child was set up; its run starts. */
  childStarted(trx: SupervisorTransaction, scope: EventScope, at: Date): Promise<void>;
  /** A child ended. */
  childEnded(
    trx: SupervisorTransaction,
    scope: EventScope,
    end: { readonly stopReason: string; readonly usage: RunUsage },
    at: Date,
  ): Promise<void>;
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
  /** An approval was answered or expired; `status` is its state. Its wait becomes a span of the run. */
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
  /** A halt is lifted in a run. */
  haltLifted(
    trx: SupervisorTransaction,
    scope: EventScope,
    haltId: string,
    at: Date,
  ): Promise<void>;
  /**
   * A call started, according to its receipt (HK-1). Published for a gateway that does not publish tool events; for
   * another, only appended to the timeline, which may have the event of the gateway already.
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
  /** A proposal was decided: sets span attributes and counts. The timeline entry is written separately. */
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
async function tell(
  trx: SupervisorTransaction,
  ...message: DropFirst<Parameters<typeof appendOutbox>>
): Promise<void> {
  noteChange(trx, 'outbox');
  await appendOutbox(trx, ...message);
}

type DropFirst<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

/** Creates the supervisor's events. */
export function createSupervisorEvents(telemetry: Telemetry): SupervisorEvents {
  const emit = async (
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
      // A call with unknown outcome has a second approval.
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
    await tell(
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
      return emit(trx, scope, 'HALTED', { haltId, status: statusOf('HALTED') }, at);
    },
    haltLifted: (trx, scope, haltId, at) =>
      emit(trx, scope, 'HALT_LIFTED', { haltId, status: statusOf('HALT_LIFTED') }, at),
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
    toolStarted: (trx, scope, { tool: toolName, argsSha256, startedAt, isPublished }, at) =>
      emit(
        trx,
        scope,
        'TOOL_START',
        {
          ...toolEmitter(isPublished),
          status: 'ok',
          toolName,
          argsSha256,
          eventTime: timestampFromDate(startedAt ?? at),
        },
        at,
      ),
    toolEnded: (trx, scope, call, at) => {
      const { tool, stopReason, argsSha256, startedAt, endedAt, isPublished } = call;
      return emit(
        trx,
        scope,
        'TOOL_END',
        {
          ...toolEmitter(isPublished),
          status: stopReason === '' ? 'ok' : stopReason,
          toolName: tool,
          argsSha256,
          eventTime: timestampFromDate(endedAt ?? at),
          ...(startedAt && endedAt && { duration: durationFromMs(msBetween(startedAt, endedAt)) }),
        },
        at,
      );
    },
    async scopeHalt(trx, name, { haltId, tenant }, at) {
      const eventId = derivedId('evt', haltId, name);
      const event = create(HookEventSchema, {
        eventId,
        type: HookEventType[name],
        emitter: 'supervisor',
        eventTime: timestampFromDate(at),
        tenant: tenant ?? '',
        traceparent: traceparentOf() ?? '',
        status: statusOf(name),
        haltId,
      });
      const payload = toBinary(HookEventSchema, event);
      await tell(trx, { eventId, subject: hookSubject({ tenant, event: name }), payload }, at);
      const fields = { tenant, halt_id: haltId, event_id: eventId };
      afterCommit(trx, () => telemetry.log.info(fields, name));
    },
    async auditCheckpoint(trx, { tenant, number, count, signed }, at) {
      const name = 'AUDIT_CHECKPOINT';
      // With the signature, so that a number which was signed twice is two events.
      const eventId = derivedId('evt', tenant, signed, name);
      const event = create(HookEventSchema, {
        eventId,
        type: HookEventType[name],
        emitter: 'supervisor',
        eventTime: timestampFromDate(at),
        tenant,
        status: 'ok',
        auditCheckpoint: { number: BigInt(number), count: BigInt(count), signed },
      });
      const payload = toBinary(HookEventSchema, event);
      await tell(trx, { eventId, subject: hookSubject({ tenant, event: name }), payload }, at);
      const fields = { tenant, checkpoint: number, records: count, event_id: eventId };
      afterCommit(trx, () => telemetry.log.info(fields, name));
    },
  };
}

function statusOf(name: 'HALTED' | 'HALT_LIFTED'): string {
  return name === 'HALTED' ? 'halted' : 'lifted';
}

function endFields({
  stopReason,
  usage,
}: {
  readonly stopReason: string;
  readonly usage: RunUsage;
}): EventFields {
  return {
    status: stopReason,
    usage: {
      inputTokens: BigInt(usage.inputTokens),
      cachedInputTokens: BigInt(usage.cachedInputTokens),
      outputTokens: BigInt(usage.outputTokens),
      reasoningTokens: BigInt(usage.reasoningTokens),
    },
    costNanoUsd: BigInt(usage.costNanoUsd),
    estimated: usage.estimatedTurns > 0,
  };
}

function toolEmitter(isPublished: boolean): { readonly emitter: string } {
  return { emitter: isPublished ? 'tool-gateway' : 'supervisor' };
}

/** The gateway's clock may have been set back. */
function msBetween(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime());
}

/** Records the wait for a person as a span of the run: who decided what, as ids (SYS-1). */
function traceWait(
  { traces, tracer }: Telemetry,
  trx: SupervisorTransaction,
  wait: {
    readonly scope: EventScope;
    readonly approvalId: string;
    readonly status: string;
    readonly toolName: string;
    readonly since: Date;
    readonly approver: string | null;
    readonly at: Date;
  },
): void {
  if (!traces) return;
  const { run, agent, callId = '' } = wait.scope;
  const attributes = {
    [ATTR_WRIT_TENANT]: run.tenant,
    [ATTR_WRIT_RUN_ID]: run.run_id,
    [ATTR_WRIT_AGENT]: agent.instance,
    [ATTR_WRIT_CALL_ID]: callId,
    [ATTR_WRIT_APPROVAL_ID]: wait.approvalId,
    [ATTR_WRIT_APPROVAL_STATE]: wait.status,
    ...(wait.toolName !== '' && { [ATTR_WRIT_TOOL]: wait.toolName }),
    ...(wait.approver !== null && { [ATTR_WRIT_APPROVER]: wait.approver }),
  };
  const parent = contextFromTraceparent(run.traceparent);
  const options = { startTime: wait.since, attributes };
  afterCommit(trx, () => tracer.startSpan('wait_for_approval', options, parent).end(wait.at));
}

/** Sets the attributes of a decision on the span of its review (SYS-1). */
function markReview({ traces }: Telemetry, row: DecisionRow, actionKind: string): void {
  if (traces) {
    trace.getActiveSpan()?.setAttributes({
      [ATTR_WRIT_DECISION_ID]: row.decision_id,
      [ATTR_WRIT_DECISION]: row.verdict,
      [ATTR_WRIT_DECISION_REASON]: row.reason,
      [ATTR_WRIT_RULE]: row.rule_id,
      [ATTR_WRIT_POLICY_VERSION]: row.policy_version,
      [ATTR_WRIT_ACTION_KIND]: actionKind,
      ...(row.executed_from !== null && { [ATTR_WRIT_EXECUTED_FROM]: row.executed_from }),
    });
  }
}
