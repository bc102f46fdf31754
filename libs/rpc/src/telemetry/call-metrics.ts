import type { DescMethod } from '@bufbuild/protobuf';
import type { WritError } from '@writ/kernel';
import { ATTR_ERROR_TYPE, type Labels, type Metrics } from '@writ/telemetry';
import { statusCode, statusName } from '../errors/status-code.ts';
import {
  ATTR_RPC_METHOD,
  ATTR_RPC_RESPONSE_STATUS_CODE,
  ATTR_RPC_SERVICE,
} from './rpc-attributes.ts';

/** Records the status and duration of a call; `failure` is the error that the client receives. */
export function recordCall(
  metrics: Metrics,
  metric: 'rpcServed' | 'rpcCalled',
  method: DescMethod,
  { failure, durationMs }: { readonly failure: WritError | undefined; readonly durationMs: number },
): void {
  if (!metrics.enabled) return;
  const labels: Labels = {
    [ATTR_RPC_SERVICE]: method.parent.typeName,
    [ATTR_RPC_METHOD]: method.name,
    [ATTR_RPC_RESPONSE_STATUS_CODE]: statusName(
      failure === undefined ? 0 : statusCode(failure.kind),
    ),
    [ATTR_ERROR_TYPE]: failure?.reason,
  };
  metrics.record(metric, durationMs / 1_000, labels);
}
