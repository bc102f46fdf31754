import { type Context, context, isSpanContextValid, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { parseTraceParent } from '@opentelemetry/core';

let installed = false;

/**
 * Makes the active context follow promises and timers in this process. Safe to call any number of
 * times; a manager that somebody else installed first stays in place.
 */
export function installContextManager(): void {
  if (installed) return;
  installed = true;
  const manager = new AsyncLocalStorageContextManager().enable();
  if (!context.setGlobalContextManager(manager)) manager.disable();
}

/**
 * The W3C `traceparent` of the span in `from` (default: the active context), or undefined when
 * there is none (SYS-1).
 */
export function traceparentOf(from: Context = context.active()): string | undefined {
  const span = trace.getSpanContext(from);
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  return `00-${span.traceId}-${span.spanId}-${flags}`;
}

/**
 * A context whose remote parent is the span that `header` names, on top of `base` (default: the
 * root context, so that a server never inherits what happens to be active). A missing or malformed
 * header answers `base` itself: a bad trace never refuses a call (SYS-1).
 */
export function contextFromTraceparent(
  header: string | undefined,
  base: Context = ROOT_CONTEXT,
): Context {
  const parsed = header === undefined ? null : parseTraceParent(header);
  return parsed === null ? base : trace.setSpanContext(base, { ...parsed, isRemote: true });
}
