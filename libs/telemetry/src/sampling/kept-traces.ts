import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** Limits of {@link KeptTraces}. */
export interface KeepLimits {
  /** Maximum held spans of all traces that are not sampled. */
  readonly maxSpans: number;
  /** Maximum held spans of one trace; later ones are dropped. */
  readonly maxSpansPerTrace: number;
  /** Maximum tracked kept traces. */
  readonly maxKept: number;
}

const DEFAULT_LIMITS: KeepLimits = { maxSpans: 8_192, maxSpansPerTrace: 512, maxKept: 4_096 };

/**
 * The unsampled traces of one service: their finished spans, held back in case the trace becomes relevant,
 * and the ids of kept traces. Bounded; the least recently active trace is evicted first.
 */
export class KeptTraces {
  readonly #limits: KeepLimits;
  readonly #held = new Map<string, ReadableSpan[]>();
  readonly #kept = new Set<string>();
  #spans = 0;

  constructor(limits: Partial<KeepLimits> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** The number of held spans. */
  get size(): number {
    return this.#spans;
  }

  /** Whether the trace is kept. */
  isKept(traceId: string): boolean {
    return this.#kept.has(traceId);
  }

  /** Whether spans of the trace are held. */
  holds(traceId: string): boolean {
    return this.#held.has(traceId);
  }

  /** Keeps the trace from now on; returns its held spans once. */
  keep(traceId: string): readonly ReadableSpan[] {
    this.#kept.delete(traceId);
    this.#kept.add(traceId);
    if (this.#kept.size > this.#limits.maxKept) this.#kept.delete(first(this.#kept));
    return this.#remove(traceId);
  }

  /** Holds a span in case its trace becomes relevant. */
  hold(span: ReadableSpan): void {
    const { maxSpans, maxSpansPerTrace } = this.#limits;
    const { traceId } = span.spanContext();
    const spans = this.#held.get(traceId) ?? [];
    // Reinserted at the end, so that the first entry is the least recently active.
    this.#held.delete(traceId);
    this.#held.set(traceId, spans);
    if (spans.length >= maxSpansPerTrace) return;
    spans.push(span);
    this.#spans += 1;
    while (this.#spans > maxSpans) this.#remove(first(this.#held.keys()));
  }

  #remove(traceId: string): readonly ReadableSpan[] {
    const spans = this.#held.get(traceId) ?? [];
    this.#held.delete(traceId);
    this.#spans -= spans.length;
    return spans;
  }
}

function first(values: Iterable<string>): string {
  for (const value of values) return value;
  return '';
}
