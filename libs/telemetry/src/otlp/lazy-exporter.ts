import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { Logger } from 'pino';

/** The common interface of the exporters of all signals. */
export interface SignalExporter<T> {
  export(items: T, done: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Options of {@link LazyExporter}. */
interface LazyOptions<T> {
  /** `traces`, `metrics` or `logs`. */
  readonly signal: string;
  /** Only its host is logged; the rest may contain a password. */
  readonly endpoint: string;
  readonly load: () => Promise<SignalExporter<T>>;
  readonly log: Logger;
}

/**
 * An exporter whose packages are loaded with the first batch, so that a service without a collector does not
 * load them. An unavailable collector causes one warning per outage and the loss of the data.
 */
export class LazyExporter<T> implements SignalExporter<T> {
  readonly #options: LazyOptions<T>;
  #loading: Promise<SignalExporter<T>> | undefined;
  #failing = false;

  constructor(options: LazyOptions<T>) {
    this.#options = options;
  }

  export(items: T, done: (result: ExportResult) => void): void {
    this.#loading ??= this.#options.load();
    this.#loading.then(
      (exporter) => exporter.export(items, (result) => done(this.#checked(result))),
      (error: unknown) =>
        done(this.#checked({ code: ExportResultCode.FAILED, error: asError(error) })),
    );
  }

  async forceFlush(): Promise<void> {
    if (this.#loading !== undefined) await (await this.#loading).forceFlush?.();
  }

  async shutdown(): Promise<void> {
    if (this.#loading !== undefined) await (await this.#loading).shutdown();
  }

  #checked(result: ExportResult): ExportResult {
    const { signal, log } = this.#options;
    const endpoint = URL.parse(this.#options.endpoint)?.host;
    const failed = result.code !== ExportResultCode.SUCCESS;
    if (failed && !this.#failing) {
      this.#failing = true;
      log.warn(
        { endpoint, signal, problem: result.error?.message },
        'OTLP export failed; dropping its data until it recovers',
      );
    }
    if (!failed && this.#failing) {
      this.#failing = false;
      log.info({ endpoint, signal }, 'OTLP export recovered');
    }
    return result;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
