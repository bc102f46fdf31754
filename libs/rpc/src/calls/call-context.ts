import type { Logger } from '@writ/telemetry';
import type { Caller } from '../caller.ts';
import { callerFields } from '../telemetry/caller-ids.ts';
import type { CallContext } from './handler.ts';

interface Parts extends Omit<CallContext, 'log' | 'traceparent' | 'remainingMs'> {
  /** The logger of the service. */
  readonly log: Logger;
  readonly traceparent: () => string;
  readonly remainingMs: () => number;
  readonly caller: Caller;
}

/** Creates the context of a handler; the logger and traceparent are created on first use. */
export function callContext(parts: Parts): CallContext {
  const { method, signal, header, caller } = parts;
  let log: Logger | undefined;
  return {
    method,
    signal,
    header,
    caller,
    get log() {
      log ??= parts.log.child({ rpc: method.name, ...callerFields(caller) });
      return log;
    },
    get remainingMs() {
      return parts.remainingMs();
    },
    get traceparent() {
      return parts.traceparent();
    },
  };
}
