import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createFreezeHandlers } from '@writ/freeze';
import { keyRoute } from '@writ/identity';
import { type Route, reserved, route } from '@writ/rpc';
import { freezeParts } from '../app/freezes/freeze-parts.ts';
import type { GatewayContext } from '../context.ts';
import { callTool } from './call-tool.ts';
import { getReceipt } from './get-receipt.ts';
import { listTools } from './list-tools.ts';
import { resolveOutcome } from './resolve-outcome.ts';
import { voidWrit } from './void-writ.ts';

/** The services of the tool gateway. */
export function gatewayRoutes(context: GatewayContext): readonly Route[] {
  const { freeze, unfreeze } = createFreezeHandlers(freezeParts(context));
  return [
    route(ToolGatewayService, {
      listTools: listTools(context),
      callTool: callTool(context),
      getReceipt: getReceipt(context),
      voidWrit: voidWrit(context),
      resolveOutcome: resolveOutcome(context),
      freeze: reserved(freeze),
      unfreeze: reserved(unfreeze),
    }),
    keyRoute(context.signer),
  ];
}
