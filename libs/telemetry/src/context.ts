import { type Context, context, isSpanContextValid, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { parseTraceParent } from '@opentelemetry/core';

let installed = false;

/**
 * Installs the context manager of this process, which propagates the active context through promises and
 * timers. Idempotent; a manager that is already installed is kept.
 */
export function installContextManager(): void {
  if (installed) return;
  installed = true;
  const manager = new AsyncLocalStorageContextManager().enable();
  if (!context.setGlobalContextManager(manager)) manager.disable();
}

/**
 * Returns the W3C `traceparent` of the span in `from` (default: the active context); undefined without a
 * span (SYS-1).
 */
export function traceparentOf(from: Context = context.active()): string | undefined {
  const span = trace.getSpanContext(from);
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  return `00-${span.traceId}-${span.spanId}-${flags}`;
}

/**
 * Returns a context whose remote parent is the span of `header`, based on `base` (default: the root context,
 * so that a server does not inherit the active context). Returns `base` for a missing or malformed header, so that an
 * invalid header never makes a call fail (SYS-1).
 */
export function contextFromTraceparent(
  header: string | undefined,
  base: Context = ROOT_CONTEXT,
): Context {
  const parsed = header === undefined ? null : parseTraceParent(header);
  return parsed === null ? base : trace.setSpanContext(base, { ...parsed, isRemote: true });
}
