import type { WritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Caller } from '../caller.ts';
import type { ServedMethod } from '../calls/served-service.ts';
import { statusCode, statusName } from '../errors/status-code.ts';
import { callerFields } from './caller-ids.ts';

/** The result of one call. */
export interface CallReport {
  readonly served: ServedMethod;
  readonly caller: Caller;
  readonly failure: WritError | undefined;
  readonly durationMs: number;
}

/**
 * Logs a finished call: ids, code and duration, never content. INTERNAL and DATA_LOSS are logged at `error`
 * with their stack, everything else at `debug` or `trace`.
 */
export function logCall(log: Logger, { served, caller, failure, durationMs }: CallReport): void {
  const isInternal = failure?.kind === 'internal' || failure?.kind === 'data_loss';
  const level = isInternal ? 'error' : served.open ? 'trace' : 'debug';
  if (!log.isLevelEnabled(level)) return;
  log[level](
    {
      rpc: served.name,
      code: statusName(failure === undefined ? 0 : statusCode(failure.kind)),
      ...(failure === undefined ? {} : { reason: failure.reason }),
      duration_ms: Math.round(durationMs * 10) / 10,
      ...callerFields(caller),
      ...(isInternal ? { err: failure.cause ?? failure } : {}),
    },
    isInternal ? 'RPC failed with an internal error' : 'RPC finished',
  );
}
