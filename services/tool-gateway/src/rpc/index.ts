import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { keyRoute } from '@writ/identity';
import { type Route, route } from '@writ/rpc';
import type { GatewayContext } from '../context.ts';
import { callTool } from './call/call-tool.ts';
import { freeze } from './freeze/freeze.ts';
import { unfreeze } from './freeze/unfreeze.ts';
import { listTools } from './list-tools.ts';
import { getReceipt } from './receipt/get-receipt.ts';
import { resolveOutcome } from './receipt/resolve-outcome.ts';
import { voidWrit } from './receipt/void-writ.ts';

/** Everything that the tool gateway serves. */
export function gatewayRoutes(context: GatewayContext): readonly Route[] {
  return [
    route(ToolGatewayService, {
      listTools: listTools(context),
      callTool: callTool(context),
      getReceipt: getReceipt(context),
      voidWrit: voidWrit(context),
      resolveOutcome: resolveOutcome(context),
      freeze: freeze(context),
      unfreeze: unfreeze(context),
    }),
    keyRoute(context.signer),
  ];
}
