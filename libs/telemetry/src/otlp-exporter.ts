import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';

/** How long one batch may take; bounds how long a mute collector can hold up a shutdown. */
const TIMEOUT_MS = 3000;

/**
 * Sends spans to an OTLP gRPC collector such as Jaeger. The exporter and its gRPC stack load with
 * the first batch, so a service without a collector never pays for them. A collector that does not
 * answer costs one warning per outage and loses spans, nothing else.
 */
export class OtlpExporter implements SpanExporter {
  readonly #endpoint: string;
  readonly #log: Logger;
  #loading: Promise<SpanExporter> | undefined;
  #failing = false;

  /** @param endpoint address of the collector, such as `http://127.0.0.1:4317` */
  constructor(endpoint: string, log: Logger) {
    this.#endpoint = endpoint;
    this.#log = log;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#load().then(
      (exporter) => exporter.export(spans, (result) => done(this.#noted(result))),
      (error: unknown) =>
        done(this.#noted({ code: ExportResultCode.FAILED, error: asError(error) })),
    );
  }

  async forceFlush(): Promise<void> {
    if (this.#loading !== undefined) await (await this.#loading).forceFlush?.();
  }

  async shutdown(): Promise<void> {
    if (this.#loading !== undefined) await (await this.#loading).shutdown();
  }

  #load(): Promise<SpanExporter> {
    this.#loading ??= import('@opentelemetry/exporter-trace-otlp-grpc').then(
      ({ OTLPTraceExporter }) =>
        new OTLPTraceExporter({ url: this.#endpoint, timeoutMillis: TIMEOUT_MS }),
    );
    return this.#loading;
  }

  #noted(result: ExportResult): ExportResult {
    const failed = result.code !== ExportResultCode.SUCCESS;
    if (failed && !this.#failing) {
      this.#log.warn(
        { endpoint: this.#endpoint, problem: result.error?.message },
        'The trace collector does not take spans; they are dropped until it does.',
      );
    }
    if (!failed && this.#failing) {
      this.#log.info({ endpoint: this.#endpoint }, 'The trace collector takes spans again.');
    }
    this.#failing = failed;
    return result;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
