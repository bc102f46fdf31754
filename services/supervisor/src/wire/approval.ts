import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type ApprovalSchema,
  type EvidenceSchema,
  ApprovalKind as KindMessage,
  ApprovalState as StateMessage,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import { omitUndefined } from '@writ/kernel';
import type { Approver, HumanCap } from '@writ/policy';
import type { Person } from '@writ/rpc';
import type { Evidence } from '../domain/approval/evidence.ts';
import type { EditableArgument, ReaderRights } from '../domain/approval/reader-rights.ts';
import { actionFrom } from '../domain/result/recorded-action.ts';
import { type ApprovalRow, humanAnswerOf } from '../store/approval/approvals.ts';
import { actionMessage, humanApprovalMessage, verdictMessage } from './action.ts';

const KINDS: Readonly<Record<ApprovalRow['kind'], KindMessage>> = {
  action: KindMessage.ACTION,
  resolve: KindMessage.RESOLVE,
};

const STATES: Readonly<Record<ApprovalRow['state'], StateMessage>> = {
  pending: StateMessage.PENDING,
  approved: StateMessage.APPROVED,
  rejected: StateMessage.REJECTED,
  expired: StateMessage.EXPIRED,
  withdrawn: StateMessage.WITHDRAWN,
  resolved: StateMessage.RESOLVED,
};

/** Converts the states of a request. */
export function approvalStatesFrom(states: readonly StateMessage[]): ApprovalRow['state'][] {
  return Object.entries(STATES)
    .filter(([, message]) => states.includes(message))
    .map(([state]) => state as ApprovalRow['state']);
}

/** Converts a person to the approver that the policy checks: the name and all roles. */
export function approverOf({ subject, roles }: Person): Approver {
  return { name: subject, roles };
}

/** The parts of an approval message that its row does not contain. */
export interface ApprovalParts {
  /** The caps of the reader. */
  readonly caps: readonly HumanCap[];
  readonly editable: readonly EditableArgument[];
  /** Undefined when the approval is not pending. */
  readonly rights: ReaderRights | undefined;
  /** Undefined where it is not shown. */
  readonly evidence?: Evidence | undefined;
}

/** Converts an approval, with the caps and rights of the reader (SV-5). */
export function approvalMessage(
  row: ApprovalRow,
  { caps, editable, rights, evidence }: ApprovalParts,
): MessageInitShape<typeof ApprovalSchema> {
  const action = actionFrom(row.action);
  const executed = actionFrom(row.executed_action);
  const human = humanAnswerOf(row);
  return {
    approvalId: row.approval_id,
    kind: KINDS[row.kind],
    state: STATES[row.state],
    runId: row.run_id,
    agent: { name: row.agent_name, instance: row.instance },
    callId: row.call_id,
    step: row.step,
    ...(action && { action: actionMessage(action) }),
    reason: row.reason,
    ruleId: row.rule_id,
    risk: row.risk,
    policyVersion: row.policy_version,
    createTime: timestampFromDate(row.created_at),
    ...(row.expires_at && { expireTime: timestampFromDate(row.expires_at) }),
    caps: caps.map(({ argument, max }) => ({ argument, maxJson: JSON.stringify(max) })),
    ...(human && { humanApproval: humanApprovalMessage(human) }),
    ...(executed && { executedAction: actionMessage(executed) }),
    runCreatedBy: row.run_created_by,
    editableArguments: editable.map(({ argument, max, decimals }) => ({
      argument,
      maxJson: max === undefined ? '' : JSON.stringify(max),
      ...omitUndefined({ decimals }),
    })),
    ...(rights && { readerRights: rights }),
    ...(evidence && { evidence: evidenceMessage(evidence) }),
  };
}

function evidenceMessage({
  goal,
  factsJson,
  steps,
  truncated,
}: Evidence): MessageInitShape<typeof EvidenceSchema> {
  return {
    goal,
    factsJson,
    truncated,
    steps: steps.map(({ verdict, ...step }) => ({ ...step, decision: verdictMessage(verdict) })),
  };
}
