import { SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { ATTR_WRIT_DECISION } from '../attributes.ts';
import { ATTR_ERROR_TYPE } from '../genai.ts';
import type { KeptTraces } from './kept-traces.ts';

/** Whoever followed a run went away: no fault of anybody. */
const WANTED_ENDINGS: ReadonlySet<unknown> = new Set(['CANCELLED', 'DRAINING']);
const APPROVALS: ReadonlySet<unknown> = new Set(['approve', 'revise']);

/**
 * Hands sampled spans on, and of the others those whose trace has an error, an escalation or a refusal
 * (SYS-1). That a trace matters travels with its next call, as the `sampled` flag of `traceparent`; a
 * service that hears so hands on what it held back of that trace.
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
    if (isSampled || matters(span) || this.#traces.isKept(traceId)) {
      // A trace that was sampled from its start has nothing held back, and need not be remembered.
      for (const held of this.#release(span, isSampled)) this.#handOn(sampled(held));
      this.#handOn(isSampled ? span : sampled(span));
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

  #handOn(span: ReadableSpan): void {
    for (const next of this.#next) next.onEnd(span);
  }

  #release(span: ReadableSpan, isSampled: boolean): readonly ReadableSpan[] {
    const { traceId } = span.spanContext();
    if (isSampled && !this.#traces.holds(traceId)) return [];
    return this.#traces.keep(traceId);
  }
}

/** Whether a span is one that must not be missed. */
function matters({ status, attributes }: ReadableSpan): boolean {
  const error = attributes[ATTR_ERROR_TYPE];
  if (WANTED_ENDINGS.has(error)) return false;
  const decision = attributes[ATTR_WRIT_DECISION];
  return (
    status.code === SpanStatusCode.ERROR ||
    error !== undefined ||
    (decision !== undefined && !APPROVALS.has(decision))
  );
}

/** The same span, as if chance had sampled it: exporters leave out the others. */
function sampled(span: ReadableSpan): ReadableSpan {
  const context = span.spanContext();
  return Object.create(span, {
    spanContext: { value: () => ({ ...context, traceFlags: TraceFlags.SAMPLED }) },
  }) as ReadableSpan;
}
