import type { Attributes } from '@opentelemetry/api';
import { type Context, type Link, type SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import {
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { KeptTraces } from './kept-traces.ts';

const SAMPLED: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const RECORDED: SamplingResult = { decision: SamplingDecision.RECORD };

/**
 * Samples spans with a sampled parent, a ratio of the traces that start here, and all kept traces. Other spans
 * are recorded too, because their trace may still be kept.
 */
export class KeepingSampler implements Sampler {
  readonly #roots: Sampler;
  readonly #traces: KeptTraces;

  /** @param ratio from 0 to 1 */
  constructor(ratio: number, traces: KeptTraces) {
    this.#roots = new TraceIdRatioBasedSampler(ratio);
    this.#traces = traces;
  }

  shouldSample(
    context: Context,
    traceId: string,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    links: Link[],
  ): SamplingResult {
    if (this.#traces.isKept(traceId)) return SAMPLED;
    const parent = trace.getSpanContext(context);
    if (parent !== undefined && trace.isSpanContextValid(parent)) {
      return (parent.traceFlags & TraceFlags.SAMPLED) === 0 ? RECORDED : SAMPLED;
    }
    const chance = this.#roots.shouldSample(context, traceId, name, kind, attributes, links);
    return chance.decision === SamplingDecision.RECORD_AND_SAMPLED ? SAMPLED : RECORDED;
  }

  toString(): string {
    return `KeepingSampler{${this.#roots.toString()}}`;
  }
}
