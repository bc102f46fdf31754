import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { NotFoundError, PermissionDeniedError } from '@writ/kernel';
import type { Caller, Handlers } from '@writ/rpc';
import type { GatewayContext } from '../context.ts';
import type { CallKey } from '../domain/writ.ts';
import { findCall } from '../store/calls.ts';
import { toCallKey } from '../wire/call.ts';

/** Returns a call's receipt to the supervisor and to the agent that made the call (TG-8). */
export function getReceipt({
  store,
}: Pick<GatewayContext, 'store'>): Handlers<typeof ToolGatewayService>['getReceipt'] {
  return async (request, { caller }) => {
    const key = toCallKey(request.call);
    rejectOtherAgent(caller, key);
    const call = await findCall(store.db, key);
    if (call?.receipt != null) return { receipt: call.receipt };
    throw new NotFoundError(
      'RECEIPT_NOT_FOUND',
      call === undefined
        ? `This agent has no call ${key.callId}.`
        : `Call ${key.callId} has no outcome yet.`,
      { call_id: key.callId },
    );
  };
}

/** Rejects an agent token for another agent's call (SYS-6). */
function rejectOtherAgent({ agent }: Caller, key: CallKey): void {
  if (agent === undefined) return;
  const isOwn =
    agent.tenant === key.tenant &&
    agent.runId === key.runId &&
    agent.agent.instance === key.agentInstance;
  if (isOwn) return;
  throw new PermissionDeniedError(
    'CALL_WRONG_OWNER',
    `Agent ${agent.agent.instance} may only read receipts of its own calls.`,
    { field: 'call' },
  );
}
