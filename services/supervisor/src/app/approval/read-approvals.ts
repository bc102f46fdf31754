import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ApprovalSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import type { Person } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import {
  type ApprovalFilter,
  type ApprovalRow,
  loadApproval,
  selectApprovals,
} from '../../store/approval/approvals.ts';
import { presentApproval } from './present-approval.ts';

/**
 * Reads one approval with its evidence, as a person of its tenant sees it (SV-5).
 * @throws NotFoundError APPROVAL_NOT_FOUND
 */
export async function readApproval(
  context: SupervisorContext,
  person: Person,
  approvalId: string,
): Promise<MessageInitShape<typeof ApprovalSchema>> {
  const row = await loadApproval(context.store.db, person.tenant, approvalId);
  return await presentApproval(context, row, person, { withEvidence: true });
}

/** Reads the approvals of a page, newest first. */
export async function listApprovals(
  { store }: Pick<SupervisorContext, 'store'>,
  filter: ApprovalFilter,
): Promise<ApprovalRow[]> {
  return await selectApprovals(store.db, filter);
}
