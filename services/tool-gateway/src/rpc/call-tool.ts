import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import { executeCall } from '../app/calls/execute-call.ts';
import { readPresentedCall, recordRefusal } from '../app/calls/presented-call.ts';
import { VerificationQueue } from '../app/calls/verification-queue.ts';
import type { GatewayContext } from '../context.ts';
import { toCallToolResponse } from '../wire/call.ts';

/**
 * Maximum number of writs that are verified concurrently; it also limits how many verifications start before the event
 * loop handles other I/O.
 */
const MAX_CONCURRENT_VERIFICATIONS = 2;

/** Executes one tool call once, under a writ for exactly that call (TG-1, TG-2, TG-5, TG-8). */
export function callTool(context: GatewayContext): Handlers<typeof ToolGatewayService>['callTool'] {
  const verifications = new VerificationQueue(MAX_CONCURRENT_VERIFICATIONS);
  return async (request, call) => {
    const source = context.tools.now.registry.tools.get(request.tool)?.source ?? '';
    try {
      const presented = await verifications.run(source, () =>
        readPresentedCall(context, request, call),
      );
      const { row, replayed } = await executeCall(context, presented, call.signal);
      return toCallToolResponse(row, replayed);
    } catch (error) {
      return await recordRefusal(context, request, call, error);
    }
  };
}
