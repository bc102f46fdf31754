import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import { readReceipt } from '../app/receipts/read-receipt.ts';
import type { GatewayContext } from '../context.ts';
import { toCallKey } from '../wire/call.ts';

/** Returns a call's receipt to the supervisor and to the agent that made the call (TG-8). */
export function getReceipt(
  context: Pick<GatewayContext, 'store'>,
): Handlers<typeof ToolGatewayService>['getReceipt'] {
  return async ({ call }, { caller }) => ({
    receipt: await readReceipt(context, caller, toCallKey(call)),
  });
}
