import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ApprovalSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import { permitsRoles } from '@writ/identity';
import { UnavailableError } from '@writ/kernel';
import { humanCaps } from '@writ/policy';
import type { Person } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import {
  editableFor,
  READ_ONLY,
  type ReadApproval,
  rightsOf,
} from '../../domain/approval/reader-rights.ts';
import { actionFrom, isCall } from '../../domain/result/recorded-action.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import type { ApprovalRow } from '../../store/approval/approvals.ts';
import { approvalMessage, approverOf } from '../../wire/approval.ts';
import { DECIDE_APPROVAL } from './answer-request.ts';
import { readEvidence } from './read-evidence.ts';

/**
 * Returns an approval as one person sees it: with the caps and rights of the reader under the current policy, and the
 * arguments that the reader may change (SV-5).
 * @param options `withEvidence`: whether to include the evidence that the policy shows to approvers
 */
export async function presentApproval(
  context: SupervisorContext,
  row: ApprovalRow,
  person: Person,
  options: { readonly withEvidence?: boolean } = {},
): Promise<MessageInitShape<typeof ApprovalSchema>> {
  const { policy, config, peers } = context;
  const reader = approverOf(person);
  const mayDecide = permitsRoles(DECIDE_APPROVAL, person.roles);
  const caps =
    row.tool === '' || !mayDecide ? [] : humanCaps(policy, { tool: row.tool, approver: reader });
  const read = readApproval(row);
  const isTool = actionFrom(row.action)?.kind === 'tool';
  const tool = isTool ? await definitionOf(peers, row.tool) : undefined;
  const rights = mayDecide ? rightsOf(policy, read, reader, config) : READ_ONLY;
  return approvalMessage(row, {
    caps,
    editable: mayDecide ? editableFor(policy, read, reader, tool) : [],
    rights: row.state === 'pending' ? rights : undefined,
    evidence: options.withEvidence ? await readEvidence(context, row) : undefined,
  });
}

function readApproval(row: ApprovalRow): ReadApproval {
  const action = actionFrom(row.action);
  return {
    kind: row.kind,
    tool: row.tool,
    ruleId: row.rule_id,
    args: action !== undefined && isCall(action) ? action.args : {},
    runStartedBy: row.run_created_by,
  };
}

/**
 * Returns the definition of a tool; undefined if the gateway is unavailable, so that the approval is shown without the
 * precision of its arguments.
 */
async function definitionOf(
  { toolGateway }: SupervisorContext['peers'],
  name: string,
): Promise<ReviewedTool | undefined> {
  try {
    return await toolGateway.tool(name);
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}
