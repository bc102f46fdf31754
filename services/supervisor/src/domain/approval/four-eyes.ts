import { PermissionDeniedError } from '@writ/kernel';
import { type Policy, requiresFourEyes } from '@writ/policy';

/** The approver, the starter of the run, and the tool. */
export interface Decider {
  readonly subject: string;
  readonly runStartedBy: string;
  /** Empty when the action is not a tool call. */
  readonly tool: string;
}

/**
 * Denies an approval by the person who started the run, if the policy or the settings require four eyes (SV-5). This
 * includes the outcome of a call: it releases what the call counted towards caps.
 * @param always whether the settings require four eyes for every action
 * @throws PermissionDeniedError FOUR_EYES_REQUIRED
 */
export function assertFourEyes(
  policy: Policy,
  { subject, runStartedBy, tool }: Decider,
  always: boolean,
): void {
  if (subject !== runStartedBy || !(always || requiresFourEyes(policy, tool))) return;
  throw new PermissionDeniedError(
    'FOUR_EYES_REQUIRED',
    `${subject} started this run; the four-eyes rule requires another person to approve ${tool === '' ? 'its actions' : `its calls of ${tool}`}.`,
    { run_created_by: runStartedBy, tool },
  );
}
