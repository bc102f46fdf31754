import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type ActionSchema,
  ExecutedFrom as ExecutedFromMessage,
} from '@writ/contracts/writ/review/v1/action_pb';
import {
  type HumanApprovalSchema,
  Verdict as VerdictMessage,
} from '@writ/contracts/writ/review/v1/decision_pb';
import { canonicalJson, type ExecutedFrom, type Verdict } from '@writ/kernel';
import type { RecordedAction } from '../domain/result/recorded-action.ts';
import type { HumanAnswer } from '../domain/result/run-result.ts';

const VERDICTS: Readonly<Record<Verdict, VerdictMessage>> = {
  approve: VerdictMessage.APPROVE,
  revise: VerdictMessage.REVISE,
  block: VerdictMessage.BLOCK,
  escalate: VerdictMessage.ESCALATE,
  invalid: VerdictMessage.INVALID,
};

const EXECUTED_FROM: Readonly<Record<ExecutedFrom, ExecutedFromMessage>> = {
  original: ExecutedFromMessage.ORIGINAL,
  supervisor_revised: ExecutedFromMessage.SUPERVISOR_REVISED,
  human_revised: ExecutedFromMessage.HUMAN_REVISED,
};

/** Converts an action; the arguments of a tool become canonical JSON (RFC 8785, TG-1). */
export function actionMessage(action: RecordedAction): MessageInitShape<typeof ActionSchema> {
  switch (action.kind) {
    case 'tool':
      return {
        kind: {
          case: 'tool',
          value: { tool: action.name, argumentsJson: canonicalJson(action.args) },
        },
      };
    case 'client_tool':
      return {
        kind: {
          case: 'clientTool',
          value: {
            tool: action.name,
            argumentsJson: canonicalJson(action.args),
            definitionDigest: action.definition_digest,
          },
        },
      };
    case 'final':
      return { kind: { case: 'final', value: { answer: action.answer } } };
    case 'delegation':
      return {
        kind: { case: 'delegation', value: { agent: action.agent, task: action.task } },
      };
  }
}

/** Converts a verdict. */
export function verdictMessage(verdict: Verdict): VerdictMessage {
  return VERDICTS[verdict];
}

/** Converts which version is executed; unspecified when nothing was approved. */
export function executedFromMessage(from: ExecutedFrom | null | undefined): ExecutedFromMessage {
  return from == null ? ExecutedFromMessage.UNSPECIFIED : EXECUTED_FROM[from];
}

/** Converts the answer of an approver. */
export function humanApprovalMessage(
  human: HumanAnswer,
): MessageInitShape<typeof HumanApprovalSchema> {
  const { approvalId, approved, comment, basis, decidedBy, decidedAt } = human;
  return {
    approvalId,
    approved,
    comment,
    basis,
    decidedBy,
    decideTime: timestampFromDate(new Date(decidedAt)),
  };
}
