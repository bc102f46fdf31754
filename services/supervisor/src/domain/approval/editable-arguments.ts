import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  PermissionDeniedError,
  shownName,
} from '@writ/kernel';
import { editableArguments, type Policy } from '@writ/policy';

/** The request field that contains edits. */
export const EDITS_FIELD = 'approve_with_edits';

/** An edit of the arguments of a tool call. */
export interface Edit {
  readonly tool: string;
  /** The rule that escalated; empty when none did. */
  readonly ruleId: string;
  readonly before: JsonObject;
  readonly edited: JsonObject;
}

/**
 * Denies a change of an argument that the policy does not let approvers change (SV-5). A value that a revise rule sets
 * does not count as a change by the approver, because the approver accepts the revision of the policy.
 * @param revise returns the arguments after the revisions of the policy
 * @throws PermissionDeniedError APPROVAL_ARGUMENT_LOCKED naming the arguments
 */
export function assertEditable(
  policy: Policy,
  { tool, ruleId, before, edited }: Edit,
  revise: (args: JsonObject) => JsonObject | undefined,
): void {
  const editable = editableArguments(policy, { tool, ruleId });
  const locked = changedNames(before, edited).filter((name) => !editable.includes(name));
  if (locked.length === 0) return;
  const revised = revise(withValues(before, edited, editable)) ?? before;
  const denied = locked.filter((name) => !same(revised[name], edited[name])).map(shownName);
  if (denied.length === 0) return;
  const [subject, verb] = denied.length === 1 ? ['Argument', 'is'] : ['Arguments', 'are'];
  const may =
    editable.length === 0
      ? 'the policy does not let approvers change arguments; approve the action unchanged or reject it'
      : `the policy lets approvers change only ${editable.join(', ')}`;
  throw new PermissionDeniedError(
    'APPROVAL_ARGUMENT_LOCKED',
    `${subject} ${denied.join(', ')} of ${tool} ${verb} locked: ${may}.`,
    { field: EDITS_FIELD, tool, locked: denied.join(','), editable: editable.join(',') },
  );
}

/** The names of changed, added and removed arguments. */
function changedNames(before: JsonObject, after: JsonObject): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !same(before[name], after[name]));
}

/** Returns `before`, with the arguments `names` taken from `after`. */
function withValues(before: JsonObject, after: JsonObject, names: readonly string[]): JsonObject {
  const kept = Object.entries(before).filter(([name]) => !names.includes(name));
  const taken = Object.entries(after).filter(([name]) => names.includes(name));
  return Object.fromEntries([...kept, ...taken]);
}

function same(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return canonicalJson(left) === canonicalJson(right);
}
