import {
  type ExecutionMeterService,
  OpenTabRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { openTab as open } from '../app/tabs/open-tab.ts';
import { requestDigest } from '../wire/request-digest.ts';
import { readNewTab, tabMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Opens the tab of an agent (EM-1). */
export function openTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['openTab'] {
  return async (request) => {
    const digest = requestDigest(OpenTabRequestSchema, request);
    const view = await open(context, readNewTab(request, digest, context.clock.now()));
    return { tab: tabMessage(view) };
  };
}
