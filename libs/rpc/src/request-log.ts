import type { WritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Caller } from './caller.ts';
import { callerFields } from './caller-ids.ts';
import type { ServedMethod } from './served-service.ts';
import { statusCode, statusName } from './status-code.ts';

/** How one call ended. */
export interface CallReport {
  readonly served: ServedMethod;
  readonly caller: Caller;
  readonly failure: WritError | undefined;
  readonly durationMs: number;
}

/**
 * Writes a line about a finished call: ids, code and duration, never content. Faults of the service
 * are errors with their stack, all else is for debugging.
 */
export function logCall(log: Logger, { served, caller, failure, durationMs }: CallReport): void {
  const isFault = failure?.kind === 'internal' || failure?.kind === 'data_loss';
  const level = isFault ? 'error' : served.open ? 'trace' : 'debug';
  if (!log.isLevelEnabled(level)) return;
  log[level](
    {
      rpc: served.name,
      code: statusName(failure === undefined ? 0 : statusCode(failure.kind)),
      ...(failure === undefined ? {} : { reason: failure.reason }),
      duration_ms: Math.round(durationMs * 10) / 10,
      ...callerFields(caller),
      ...(isFault ? { err: failure.cause ?? failure } : {}),
    },
    isFault ? 'A call failed through a fault of the service.' : 'Answered a call.',
  );
}
