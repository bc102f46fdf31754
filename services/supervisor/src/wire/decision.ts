import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { DecisionSchema } from '@writ/contracts/writ/review/v1/decision_pb';
import type { SignedToken } from '@writ/identity';
import { actionFrom } from '../domain/result/recorded-action.ts';
import type { HumanAnswer } from '../domain/result/run-result.ts';
import type { DecisionRow } from '../store/review/decisions.ts';
import {
  actionMessage,
  executedFromMessage,
  humanApprovalMessage,
  verdictMessage,
} from './action.ts';

/** A decision message. */
export type DecisionMessage = MessageInitShape<typeof DecisionSchema>;

/** The parts of a decision that its row does not hold. */
export interface DecisionParts {
  /** Omitted without an approval, or before it is answered. */
  readonly human?: HumanAnswer | undefined;
  /** Never on a timeline. */
  readonly writ?: SignedToken | undefined;
}

/** Converts a decision. */
export function decisionMessage(
  row: DecisionRow,
  { human, writ }: DecisionParts = {},
): DecisionMessage {
  const action = actionFrom(row.action);
  const revised = actionFrom(row.revised_action);
  const executed = actionFrom(row.executed_action);
  return {
    decisionId: row.decision_id,
    callId: row.call_id,
    step: row.step,
    verdict: verdictMessage(row.verdict),
    reason: row.reason,
    ruleId: row.rule_id,
    risk: row.risk,
    policyVersion: row.policy_version,
    ...(action && { action: actionMessage(action) }),
    ...(revised && { revisedAction: actionMessage(revised) }),
    ...(executed && { executedAction: actionMessage(executed) }),
    executedFrom: executedFromMessage(row.executed_from),
    ...(writ && { writ: writ.token, writExpireTime: timestampFromDate(writ.expireTime) }),
    approvalId: row.approval_id ?? '',
    ...(human && { humanApproval: humanApprovalMessage(human) }),
    settled: row.settled,
    stopReason: row.stop_reason ?? '',
    runEnded: row.run_ended,
    decideTime: timestampFromDate(row.decided_at),
  };
}
