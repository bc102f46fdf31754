import { randomBytes } from 'node:crypto';
import {
  type Context,
  context,
  isSpanContextValid,
  type Span,
  type SpanContext,
  type SpanOptions,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/**
 * The tracer of a service that exports no traces: it records nothing and propagates the incoming `traceparent`
 * unchanged, so that the spans of services that export traces stay in one trace. Without a valid `traceparent`, it
 * starts a trace; the trace id correlates the log lines of all services.
 */
export class PassThroughTracer implements Tracer {
  startSpan(_name: string, options?: SpanOptions, from: Context = context.active()): Span {
    const parent = options?.root === true ? undefined : trace.getSpanContext(from);
    const isUsable = parent !== undefined && isSpanContextValid(parent);
    return trace.wrapSpanContext(isUsable ? parent : freshContext());
  }

  startActiveSpan<F extends (span: Span) => unknown>(
    name: string,
    ...rest: readonly (F | SpanOptions | Context)[]
  ): ReturnType<F> {
    const work = rest.at(-1) as F;
    const from = rest.length > 2 ? (rest[1] as Context) : context.active();
    const span = this.startSpan(name, rest.length > 1 ? (rest[0] as SpanOptions) : {}, from);
    return context.with(trace.setSpan(from, span), () => work(span)) as ReturnType<F>;
  }
}

function freshContext(): SpanContext {
  const id = randomBytes(24).toString('hex');
  return { traceId: id.slice(0, 32), spanId: id.slice(32), traceFlags: TraceFlags.SAMPLED };
}
