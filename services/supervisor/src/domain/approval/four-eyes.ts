import { PermissionDeniedError } from '@writ/kernel';
import { type Policy, requiresFourEyes } from '@writ/policy';

/** The approver, the starter of the run, and the tool. */
export interface Decider {
  readonly subject: string;
  readonly runStartedBy: string;
  /** Empty when the action is not a tool call. */
  readonly tool: string;
}

/** The settings of the four-eyes rule. */
export interface FourEyesSettings {
  /** Whether it applies to every action, regardless of the policy. */
  readonly fourEyes: boolean;
  /** The person of the development key, who works alone; exempt unless `fourEyes` or the policy sets the rule. */
  readonly developer?: string | undefined;
}

/**
 * Denies an approval by the person who started the run (SV-5). Unless `fourEyes` is set, the policy can permit the
 * approval, and the person of the development key is exempt while the policy does not set the rule. The same applies to
 * resolving the outcome of a call, because a resolution can release the amounts that the call counted towards caps.
 * @throws PermissionDeniedError FOUR_EYES_REQUIRED
 */
export function assertFourEyes(
  policy: Policy,
  { subject, runStartedBy, tool }: Decider,
  { fourEyes, developer }: FourEyesSettings,
): void {
  if (subject !== runStartedBy) return;
  const isExempt = subject === developer && policy.fourEyes === undefined;
  if (!fourEyes && (isExempt || !requiresFourEyes(policy, tool))) return;
  const isDefault = !fourEyes && policy.fourEyes === undefined;
  const hint = isDefault ? ', unless the policy sets human.four_eyes to false' : '';
  throw new PermissionDeniedError(
    'FOUR_EYES_REQUIRED',
    `${subject} started this run; the four-eyes rule requires another person to approve ${tool === '' ? 'its actions' : `its calls of ${tool}`}${hint}.`,
    { run_created_by: runStartedBy, tool },
  );
}
