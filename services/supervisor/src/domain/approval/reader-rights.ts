import { isWritError, type JsonObject } from '@writ/kernel';
import {
  type Approver,
  checkHumanDecision,
  editableArguments,
  humanCaps,
  type Policy,
} from '@writ/policy';
import type { ReviewedTool } from '../review/reviewed-tool.ts';
import { assertFourEyes, type FourEyesSettings } from './four-eyes.ts';

/** The pending approval that a person reads. */
export interface ReadApproval {
  /** `action`: an action waits for approval; `resolve`: a person must state the unknown outcome of a call (TG-5). */
  readonly kind: 'action' | 'resolve';
  /** Empty when the action is not a tool call. */
  readonly tool: string;
  /** The rule that escalated; empty when none did. */
  readonly ruleId: string;
  readonly args: JsonObject;
  readonly runStartedBy: string;
}

/** An argument that an approver may change. */
export interface EditableArgument {
  readonly argument: string;
  /** The reader's cap, in the unit of the argument; undefined if the reader has no cap. */
  readonly max: number | undefined;
  /** Undefined when the tool declares no precision. */
  readonly decimals: number | undefined;
}

/** What a reader may do with an approval, according to the policy and the settings. */
export interface ReaderRights {
  readonly mayApprove: boolean;
  /** Whether the reader may approve with other values of editable arguments. */
  readonly mayEdit: boolean;
  /** Empty when the reader may approve. */
  readonly refusal: string;
}

/** The arguments that the policy lets approvers change, with the limits of the reader (SV-5). */
export function editableFor(
  policy: Policy,
  { kind, tool: name, ruleId }: ReadApproval,
  reader: Approver,
  tool: ReviewedTool | undefined,
): readonly EditableArgument[] {
  if (kind !== 'action' || name === '') return [];
  const caps = humanCaps(policy, { tool: name, approver: reader });
  return editableArguments(policy, { tool: name, ruleId }).map((argument) => ({
    argument,
    max: caps.find((cap) => cap.argument === argument)?.max,
    decimals: tool?.contract.specs.find((spec) => spec.name === argument)?.decimals,
  }));
}

/** The rights of a reader whose role only permits reading (PE-1). */
export const READ_ONLY: ReaderRights = {
  mayApprove: false,
  mayEdit: false,
  refusal: 'A decision requires the role approver or admin.',
};

/** The rights of the reader of a pending approval: four-eyes rule and caps (SV-5). */
export function rightsOf(
  policy: Policy,
  approval: ReadApproval,
  reader: Approver,
  settings: FourEyesSettings,
): ReaderRights {
  const { kind, tool, ruleId, args, runStartedBy } = approval;
  try {
    assertFourEyes(policy, { subject: reader.name, runStartedBy, tool }, settings);
  } catch (error) {
    if (!isWritError(error)) throw error;
    return { mayApprove: false, mayEdit: false, refusal: error.message };
  }
  if (kind === 'resolve' || tool === '') return { mayApprove: true, mayEdit: false, refusal: '' };
  const hasEditable = editableArguments(policy, { tool, ruleId }).length > 0;
  const check = checkHumanDecision(policy, { tool, args, approver: reader });
  if (check.allowed) return { mayApprove: true, mayEdit: hasEditable, refusal: '' };
  const mayEdit = hasEditable && check.reason !== 'no_human_cap';
  return { mayApprove: false, mayEdit, refusal: check.message };
}
