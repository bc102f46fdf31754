import {
  type ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import { voidWrit as settleWrit } from '../app/receipts/void-writ.ts';
import type { GatewayContext } from '../context.ts';
import { toCallKey } from '../wire/call.ts';

const STATES = {
  burnt: VoidState.BURNT,
  receipt: VoidState.RECEIPT,
  in_flight: VoidState.IN_FLIGHT,
} as const;

/**
 * Settles the call of a writ that the worker will not present again: burns a call that was never made, records the
 * outcome of an interrupted call, and does not change a call in flight (TG-8).
 */
export function voidWrit(context: GatewayContext): Handlers<typeof ToolGatewayService>['voidWrit'] {
  return async ({ call }) => {
    const voided = await settleWrit(context, toCallKey(call));
    return { ...voided, state: STATES[voided.state] };
  };
}
