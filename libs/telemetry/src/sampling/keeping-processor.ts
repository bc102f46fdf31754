import { SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { ATTR_WRIT_DECISION } from '../attributes.ts';
import { ATTR_ERROR_TYPE } from '../genai.ts';
import type { KeptTraces } from './kept-traces.ts';

/** Reasons of calls that ended as intended, such as a cancelled watch. */
const EXPECTED_REASONS: ReadonlySet<unknown> = new Set(['CANCELLED', 'DRAINING']);
const APPROVALS: ReadonlySet<unknown> = new Set(['approve', 'revise']);

/**
 * Exports sampled spans, and all spans of traces with an error, an escalation or a block (SYS-1). Such a trace
 * is marked by the `sampled` flag of the `traceparent` of its next call; a service that receives it exports
 * the spans that it has held back.
 */
export class KeepingProcessor implements SpanProcessor {
  readonly #next: readonly SpanProcessor[];
  readonly #traces: KeptTraces;

  constructor(next: readonly SpanProcessor[], traces: KeptTraces) {
    this.#next = next;
    this.#traces = traces;
  }

  onStart(...[span, parent]: Parameters<SpanProcessor['onStart']>): void {
    for (const next of this.#next) next.onStart(span, parent);
  }

  onEnd(span: ReadableSpan): void {
    const { traceId, traceFlags } = span.spanContext();
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
    if (isSampled || isRelevant(span) || this.#traces.isKept(traceId)) {
      // A trace that was sampled from its start has no held spans and need not be tracked.
      for (const held of this.#release(span, isSampled)) this.#export(sampled(held));
      this.#export(isSampled ? span : sampled(span));
    } else {
      this.#traces.hold(span);
    }
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#next.map((next) => next.forceFlush()));
  }

  async shutdown(): Promise<void> {
    await Promise.all(this.#next.map((next) => next.shutdown()));
  }

  #export(span: ReadableSpan): void {
    for (const next of this.#next) next.onEnd(span);
  }

  #release(span: ReadableSpan, isSampled: boolean): readonly ReadableSpan[] {
    const { traceId } = span.spanContext();
    if (isSampled && !this.#traces.holds(traceId)) return [];
    return this.#traces.keep(traceId);
  }
}

/** Whether a span has an error or a decision other than an approval. */
function isRelevant({ status, attributes }: ReadableSpan): boolean {
  const error = attributes[ATTR_ERROR_TYPE];
  if (EXPECTED_REASONS.has(error)) return false;
  const decision = attributes[ATTR_WRIT_DECISION];
  return (
    status.code === SpanStatusCode.ERROR ||
    error !== undefined ||
    (decision !== undefined && !APPROVALS.has(decision))
  );
}

/** Returns the span with the sampled flag set, because exporters drop spans without it. */
function sampled(span: ReadableSpan): ReadableSpan {
  const context = span.spanContext();
  return Object.create(span, {
    spanContext: { value: () => ({ ...context, traceFlags: TraceFlags.SAMPLED }) },
  }) as ReadableSpan;
}
