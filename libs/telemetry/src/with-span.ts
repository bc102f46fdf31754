import {
  type Context,
  context,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { isWritError } from '@writ/kernel';
import { ATTR_ERROR_TYPE } from './genai.ts';

/** {@link SpanOptions} with the parent of the span. */
export interface WithSpanOptions extends SpanOptions {
  /** The parent; default the active context. */
  readonly parent?: Context;
}

/**
 * Runs `fn` in a new active span and ends the span afterwards. Returns the result of `fn`; records and rethrows
 * its error.
 */
export async function withSpan<T>(
  tracer: Tracer,
  name: string,
  options: WithSpanOptions,
  fn: (span: Span, spanContext: Context) => Promise<T> | T,
): Promise<T> {
  const { parent = context.active(), ...spanOptions } = options;
  const span = tracer.startSpan(name, spanOptions, parent);
  const spanContext = trace.setSpan(parent, span);
  try {
    return await context.with(spanContext, () => fn(span, spanContext));
  } catch (error) {
    recordError(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Marks `span` as failed. Records the reason and the message of a WritError, which contain only ids and limits. Of any
 * other error, records only the class, because the message may contain content or a secret.
 */
export function recordError(span: Span, error: unknown): void {
  if (isWritError(error)) {
    span.setAttribute(ATTR_ERROR_TYPE, error.reason);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
    span.addEvent('exception', {
      'exception.type': error.name,
      'exception.message': error.message,
    });
    return;
  }
  const type = error instanceof Error ? error.name : typeof error;
  span.setAttribute(ATTR_ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR, message: type });
  span.addEvent('exception', { 'exception.type': type });
}
