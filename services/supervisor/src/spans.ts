import { afterCommit } from '@writ/store';
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
} from '@writ/telemetry';
import type { DecisionRow } from './store/review/decisions.ts';
import type { SupervisorTransaction } from './store/supervisor-store.ts';
import type { EventScope } from './wire/hook-fields.ts';

/**
 * Records the wait for a person as a span of the run, with the ids of the approver, the approval and the call (SYS-1).
 */
export function traceWait(
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
export function markReview({ traces }: Telemetry, row: DecisionRow, actionKind: string): void {
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
