import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** How much is kept back at most. */
export interface KeepLimits {
  /** Spans of traces that are not sampled, over all traces. */
  readonly maxSpans: number;
  /** Spans of one such trace; later ones are dropped. */
  readonly maxSpansPerTrace: number;
  /** Traces that are remembered as kept. */
  readonly maxKept: number;
}

const DEFAULT_LIMITS: KeepLimits = { maxSpans: 8_192, maxSpansPerTrace: 512, maxKept: 4_096 };

/**
 * What one service knows of traces that chance did not sample: their finished spans, in case one of
 * them turns out to matter, and which did. Bounded; the trace that has been quiet longest goes first.
 */
export class KeptTraces {
  readonly #limits: KeepLimits;
  readonly #waiting = new Map<string, ReadableSpan[]>();
  readonly #kept = new Set<string>();
  #spans = 0;

  constructor(limits: Partial<KeepLimits> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** Spans that wait at present. */
  get size(): number {
    return this.#spans;
  }

  /** Whether the trace matters, whatever chance said. */
  isKept(traceId: string): boolean {
    return this.#kept.has(traceId);
  }

  /** Whether spans of the trace are held back. */
  holds(traceId: string): boolean {
    return this.#waiting.has(traceId);
  }

  /** Has the trace matter from now on; returns its spans so far, once. */
  keep(traceId: string): readonly ReadableSpan[] {
    this.#kept.delete(traceId);
    this.#kept.add(traceId);
    if (this.#kept.size > this.#limits.maxKept) this.#kept.delete(first(this.#kept));
    return this.#take(traceId);
  }

  /** Holds a span back, in case its trace turns out to matter. */
  hold(span: ReadableSpan): void {
    const { maxSpans, maxSpansPerTrace } = this.#limits;
    const { traceId } = span.spanContext();
    const spans = this.#waiting.get(traceId) ?? [];
    // The newest last, so that the first is the one that has been quiet longest.
    this.#waiting.delete(traceId);
    this.#waiting.set(traceId, spans);
    if (spans.length >= maxSpansPerTrace) return;
    spans.push(span);
    this.#spans += 1;
    while (this.#spans > maxSpans) this.#take(first(this.#waiting.keys()));
  }

  #take(traceId: string): readonly ReadableSpan[] {
    const spans = this.#waiting.get(traceId) ?? [];
    this.#waiting.delete(traceId);
    this.#spans -= spans.length;
    return spans;
  }
}

function first(values: Iterable<string>): string {
  for (const value of values) return value;
  return '';
}
