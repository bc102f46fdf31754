import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';

/**
 * Returns the text that tells a model or a client why a call was not executed: the client withdrew it, or policy or a
 * person refused it.
 */
export function refusalText(tool: string, { reason, humanApproval, stopReason }: Decision): string {
  const comment = humanApproval?.comment ?? '';
  if (stopReason === 'withdrawn') return `Nothing was executed. The client withdrew ${tool}.`;
  const why = humanApproval === undefined ? `policy: ${stopReason || reason}` : 'a person';
  const remark = comment === '' ? '' : ` Comment: ${comment}`;
  return `Nothing was executed. ${tool} was refused by ${why}.${remark}`;
}
