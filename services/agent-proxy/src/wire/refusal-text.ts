import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';

/** Says that a call was refused, by whom and why, to a model or a client. */
export function refusalText(tool: string, { reason, humanApproval, stopReason }: Decision): string {
  const comment = humanApproval?.comment ?? '';
  if (stopReason === 'withdrawn') return `Nothing was executed. The client withdrew ${tool}.`;
  const why = humanApproval === undefined ? `policy: ${stopReason || reason}` : 'a person';
  const remark = comment === '' ? '' : ` Comment: ${comment}`;
  return `Nothing was executed. ${tool} was refused by ${why}.${remark}`;
}
