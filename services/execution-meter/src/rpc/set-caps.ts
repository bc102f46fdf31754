import {
  type ExecutionMeterService,
  SetCapsRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { setCaps as set } from '../app/tabs/set-caps.ts';
import { readSetCaps } from '../wire/caps.ts';
import { requestDigest } from '../wire/request-digest.ts';
import { levelMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Sets the caps of a run, a session or a tenant at run time (EM-3). */
export function setCaps(context: RpcContext): Handlers<typeof ExecutionMeterService>['setCaps'] {
  return async (request) => {
    const { requestId } = request;
    const digest = requestDigest(SetCapsRequestSchema, request);
    const change = readSetCaps(request);
    const balance = await set(context, { requestId, requestDigest: digest }, change);
    return { balance: levelMessage(balance) };
  };
}
