import { printable, shortAction, wordOf } from '@writ/client/display';
import {
  type Approval,
  ApprovalKind,
  ApprovalState,
  type Evidence,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { type Column, fields } from '../../output/table.ts';
import { timeText } from '../../output/text.ts';

/** Columns of a list of approvals. */
export const APPROVAL_COLUMNS: readonly Column<Approval>[] = [
  { heading: 'APPROVAL', text: ({ approvalId }) => approvalId },
  { heading: 'STATE', text: ({ state }) => wordOf(ApprovalState, state) },
  { heading: 'AGENT', text: ({ agent }) => agent?.name ?? '' },
  { heading: 'ACTION', text: actionText },
  { heading: 'REASON', text: ({ reason }) => reason },
  { heading: 'OPENED', text: ({ createTime }) => timeText(createTime) },
  { heading: 'RUN', text: ({ runId }) => runId },
];

/** Formats an approval as one line, for `writ approvals watch`. */
export function approvalLine(approval: Approval): string {
  const decidedBy = approval.humanApproval?.decidedBy ?? '';
  const texts = [
    approval.approvalId,
    wordOf(ApprovalState, approval.state) + (decidedBy === '' ? '' : ` by ${decidedBy}`),
    `run ${approval.runId}`,
    approval.agent?.name ?? '',
    actionText(approval),
    approval.reason,
  ];
  return printable(texts.join('  '));
}

/**
 * Formats the details that an approver needs for a decision, and the commands that decide the approval.
 * @param options `mayDecide`: whether the roles of the reader permit decisions
 */
export function approvalDetails(
  approval: Approval,
  { mayDecide }: { readonly mayDecide: boolean },
): string[] {
  const { humanApproval: human, evidence } = approval;
  const isPending = approval.state === ApprovalState.PENDING;
  const commands = isPending && mayDecide ? choices(approval) : [];
  return [
    ...fields({
      approval: approval.approvalId,
      state: wordOf(ApprovalState, approval.state),
      action: actionText(approval),
      reason: approval.reason,
      rule: `${approval.ruleId} (risk ${approval.risk})`,
      agent: `${approval.agent?.name ?? ''} in run ${approval.runId}, step ${approval.step}`,
      'started by': approval.runCreatedBy,
      opened: timeText(approval.createTime),
      expires: isPending ? timeText(approval.expireTime) : '',
      decision:
        human === undefined
          ? ''
          : `${human.approved ? 'approved' : 'rejected'} by ${human.decidedBy} at ${timeText(human.decideTime)}`,
      basis: human?.basis ?? '',
      comment: human?.comment ?? '',
      executed: approval.executedAction === undefined ? '' : shortAction(approval.executedAction),
      'you may change': isPending ? editableText(approval) : '',
      'you may not approve it as it is': approval.readerRights?.refusal ?? '',
      goal: evidence?.goal ?? '',
      facts: evidence?.factsJson ?? '',
    }),
    ...(evidence === undefined ? [] : stepLines(evidence)),
    ...(commands.length === 0 ? [] : ['', ...commands]),
  ];
}

/** Returns the lines for the earlier steps of the run, each with its result if the policy discloses it. */
function stepLines({ steps, truncated }: Evidence): string[] {
  return [
    ...(steps.length === 0 ? [] : ['', 'earlier steps:']),
    ...steps.flatMap(
      ({ step, agent, name, content, decision, outcome, stopReason, observation }) => [
        `${String(step).padStart(4)}  ${agent?.name ?? ''}: ${name} ${content}: ${[wordOf(Verdict, decision), outcome || stopReason].filter((text) => text !== '').join(', ')}`,
        ...(observation === '' ? [] : [`      ${observation}`]),
      ],
    ),
    ...(truncated ? ['The evidence is incomplete: parts of it were cut or omitted.'] : []),
  ].map(printable);
}

/** Returns the commands with which the reader may decide the approval. */
function choices({ approvalId, kind, readerRights, editableArguments }: Approval): string[] {
  if (kind === ApprovalKind.RESOLVE) {
    // The four-eyes rule applies to both commands.
    if (!readerRights?.mayApprove) return [];
    return [
      `writ approvals resolve ${approvalId} --result JSON`,
      `writ approvals resolve ${approvalId} --not-done`,
    ];
  }
  const edits = editableArguments.map(({ argument }) => `${argument}=VALUE`).join(' ');
  return [
    ...(readerRights?.mayApprove ? [`writ approvals approve ${approvalId}`] : []),
    ...(readerRights?.mayEdit && edits !== ''
      ? [`writ approvals edit ${approvalId} ${edits}`]
      : []),
    `writ approvals reject ${approvalId}`,
  ];
}

function editableText({ editableArguments }: Approval): string {
  return editableArguments
    .map(({ argument, maxJson }) => (maxJson === '' ? argument : `${argument} up to ${maxJson}`))
    .join(', ');
}

function actionText({ kind, action }: Approval): string {
  if (action === undefined) return '';
  const text = shortAction(action);
  return kind === ApprovalKind.RESOLVE ? `was this call executed? ${text}` : text;
}
