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

/** A decision in the contract's form. */
export type DecisionMessage = MessageInitShape<typeof DecisionSchema>;

/** What a decision's row does not hold. */
export interface DecisionParts {
  /** What a person said; left out when nobody was asked or nobody has answered. */
  readonly human?: HumanAnswer | undefined;
  /** The order for the gateway; never on a timeline. */
  readonly writ?: SignedToken | undefined;
}

/** The contract's form of a decision. */
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
