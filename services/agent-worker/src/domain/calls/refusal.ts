import { isStopReason, outcomeOf } from '@writ/kernel';

const TELLABLE_ERRORS = ['invalid_action:', 'tool_error:', 'tool_bad_result:'];

/**
 * Whether a model can be told of a stop and go on (AG-10): what policy, a person, a limit of one tool
 * or the tool itself refused. Limits of the run, its budget and its time stop it in any case.
 */
export function isTellable(stopReason: string): boolean {
  if (!isStopReason(stopReason)) return false;
  return (
    outcomeOf(stopReason).state === 'BLOCKED' ||
    TELLABLE_ERRORS.some((prefix) => stopReason.startsWith(prefix))
  );
}
