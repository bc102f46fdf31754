import { PermissionDeniedError } from '@writ/kernel';
import { type Policy, requiresFourEyes } from '@writ/policy';

/** Who says what of whose run. */
export interface Decider {
  readonly subject: string;
  readonly runStartedBy: string;
  /** Empty for an action that is no tool call. */
  readonly tool: string;
}

/**
 * Refuses the yes of whoever started the run, where policy or settings want a second pair of eyes
 * (SV-5). What became of a call is such an answer, too: it gives back what the call counted for.
 * @param always the setting that wants it of every action
 * @throws PermissionDeniedError FOUR_EYES_REQUIRED
 */
export function assertOtherEyes(
  policy: Policy,
  { subject, runStartedBy, tool }: Decider,
  always: boolean,
): void {
  if (subject !== runStartedBy || !(always || requiresFourEyes(policy, tool))) return;
  throw new PermissionDeniedError(
    'FOUR_EYES_REQUIRED',
    `${subject} started this run, and four-eyes rules want somebody else to say yes to ${tool === '' ? 'its actions' : `its calls of ${tool}`}.`,
    { run_created_by: runStartedBy, tool },
  );
}
