import { type CallKey, NotFoundError, PermissionDeniedError } from '@writ/kernel';
import type { Caller } from '@writ/rpc';
import type { GatewayContext } from '../../context.ts';
import { findCall } from '../../store/calls.ts';

/**
 * Reads the receipt of a call for the supervisor or the agent that made the call (TG-8).
 * @throws PermissionDeniedError CALL_WRONG_OWNER; NotFoundError RECEIPT_NOT_FOUND
 */
export async function readReceipt(
  { store }: Pick<GatewayContext, 'store'>,
  caller: Caller,
  key: CallKey,
): Promise<string> {
  rejectOtherAgent(caller, key);
  const call = await findCall(store.db, key);
  if (call?.receipt != null) return call.receipt;
  throw new NotFoundError(
    'RECEIPT_NOT_FOUND',
    call === undefined
      ? `This agent has no call ${key.callId}.`
      : `Call ${key.callId} has no outcome yet.`,
    { call_id: key.callId },
  );
}

/** Rejects an agent token for another agent's call (SYS-6). */
function rejectOtherAgent({ agent }: Caller, key: CallKey): void {
  if (agent === undefined) return;
  const isOwn =
    agent.tenant === key.tenant &&
    agent.runId === key.runId &&
    agent.agent.instance === key.instance;
  if (isOwn) return;
  throw new PermissionDeniedError(
    'CALL_WRONG_OWNER',
    `Agent ${agent.agent.instance} may only read receipts of its own calls.`,
    { field: 'call' },
  );
}
