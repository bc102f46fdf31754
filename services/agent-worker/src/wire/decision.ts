import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Action as ActionMessage,
  type ActionSchema,
  ExecutedFrom as ExecutedFromMessage,
} from '@writ/contracts/writ/review/v1/action_pb';
import {
  type Decision as DecisionMessage,
  Verdict as VerdictMessage,
} from '@writ/contracts/writ/review/v1/decision_pb';
import { DataLossError, type ExecutedFrom, type Verdict } from '@writ/kernel';
import type { Action, Decision } from '../domain/calls/decision.ts';

/**
 * Converts a decision into plain JSON.
 * @throws DataLossError INVALID_DECISION when the message is undefined or the verdict is unknown
 */
export function decisionFrom(message: DecisionMessage | undefined): Decision {
  if (message === undefined) throw malformed('decision');
  const action = actionFrom(message.action);
  const revisedAction = actionFrom(message.revisedAction);
  const executedAction = actionFrom(message.executedAction);
  const executedFrom = executedFromOf(message.executedFrom);
  const { humanApproval: human, writExpireTime } = message;
  return {
    decisionId: message.decisionId,
    callId: message.callId,
    verdict: verdictOf(message.verdict),
    reason: message.reason,
    ...(action && { action }),
    ...(revisedAction && { revisedAction }),
    ...(executedAction && { executedAction }),
    ...(executedFrom && { executedFrom }),
    ...(message.writ !== '' && { writ: message.writ }),
    ...(writExpireTime && { writExpiresAt: timestampMs(writExpireTime) }),
    approvalId: message.approvalId,
    ...(human && {
      humanApproval: { approved: human.approved, comment: human.comment, basis: human.basis },
    }),
    settled: message.settled,
    stopReason: message.stopReason,
    runEnded: message.runEnded,
  };
}

/** Converts an action into its message. */
export function actionMessage(action: Action): MessageInitShape<typeof ActionSchema> {
  switch (action.kind) {
    case 'tool': {
      const { tool, argumentsJson } = action;
      return { kind: { case: 'tool', value: { tool, argumentsJson } } };
    }
    case 'delegation':
      return { kind: { case: 'delegation', value: { agent: action.agent, task: action.task } } };
    case 'final':
      return { kind: { case: 'final', value: { answer: action.answer } } };
  }
}

function actionFrom(message: ActionMessage | undefined): Action | undefined {
  switch (message?.kind.case) {
    case 'tool': {
      const { tool, argumentsJson } = message.kind.value;
      return { kind: 'tool', tool, argumentsJson };
    }
    case 'delegation': {
      const { agent, task } = message.kind.value;
      return { kind: 'delegation', agent, task };
    }
    case 'final':
      return { kind: 'final', answer: message.kind.value.answer };
    // Only external agents have client tools.
    case 'clientTool':
    case undefined:
      return undefined;
  }
}

function verdictOf(verdict: VerdictMessage): Verdict {
  switch (verdict) {
    case VerdictMessage.APPROVE:
      return 'approve';
    case VerdictMessage.REVISE:
      return 'revise';
    case VerdictMessage.BLOCK:
      return 'block';
    case VerdictMessage.ESCALATE:
      return 'escalate';
    case VerdictMessage.INVALID:
      return 'invalid';
    default:
      throw malformed('verdict');
  }
}

function executedFromOf(from: ExecutedFromMessage): ExecutedFrom | undefined {
  switch (from) {
    case ExecutedFromMessage.ORIGINAL:
      return 'original';
    case ExecutedFromMessage.SUPERVISOR_REVISED:
      return 'supervisor_revised';
    case ExecutedFromMessage.HUMAN_REVISED:
      return 'human_revised';
    default:
      return undefined;
  }
}

function malformed(field: string): DataLossError {
  return new DataLossError('INVALID_DECISION', `The supervisor sent no valid ${field}.`, { field });
}
