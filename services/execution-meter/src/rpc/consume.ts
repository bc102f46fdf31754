import {
  ConsumeRequestSchema,
  type ExecutionMeterService,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { consume as bookConsumption } from '../app/tabs/consume.ts';
import { requestDigest } from '../wire/request-digest.ts';
import { agentKey, tabMessage, undividedUsage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Books external spending, then checks the caps (EM-2). Tokens are booked as input tokens. */
export function consume(context: RpcContext): Handlers<typeof ExecutionMeterService>['consume'] {
  return async (request, { traceparent }) => {
    const { requestId, tokens, costNanoUsd: cost, turns } = request;
    const usage = undividedUsage(tokens);
    const view = await bookConsumption(context, {
      key: agentKey(request.tab),
      requestId,
      requestDigest: requestDigest(ConsumeRequestSchema, request),
      spent: { usage, cost, turns, estimated: false, failed: false },
      traceparent,
    });
    return { tab: tabMessage(view) };
  };
}
