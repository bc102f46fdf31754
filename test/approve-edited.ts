import type { WritClient } from '@writ/client';
import { type JsonObject, newId } from '@writ/kernel';

/** Approves a pending action with these changes of its arguments, as a person does. */
export async function approveEdited(
  { client }: { readonly client: Pick<WritClient, 'approvals'> },
  approvalId: string,
  changes: JsonObject = {},
): Promise<void> {
  const answer = {
    case: 'approveWithEdits',
    value: { changesJson: JSON.stringify(changes) },
  } as const;
  await client.approvals.decideApproval({ requestId: newId('req'), approvalId, answer });
}
