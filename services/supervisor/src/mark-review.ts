import {
  ATTR_WRIT_ACTION_KIND,
  ATTR_WRIT_DECISION,
  ATTR_WRIT_DECISION_ID,
  ATTR_WRIT_DECISION_REASON,
  ATTR_WRIT_EXECUTED_FROM,
  ATTR_WRIT_POLICY_VERSION,
  ATTR_WRIT_RULE,
  type Telemetry,
  trace,
} from '@writ/telemetry';
import type { DecisionRow } from './store/review/decisions.ts';

/** Says on the span of a review what was decided, and counts it (SYS-1). */
export function markReview(
  { traces, metrics }: Telemetry,
  row: DecisionRow,
  actionKind: string,
): void {
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
  if (!metrics.enabled) return;
  metrics.count('reviews', {
    'writ.tenant': row.tenant,
    [ATTR_WRIT_DECISION]: row.verdict,
    [ATTR_WRIT_RULE]: row.rule_id,
    [ATTR_WRIT_ACTION_KIND]: actionKind,
  });
}
