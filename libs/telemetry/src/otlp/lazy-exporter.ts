import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { Logger } from 'pino';

/** What the exporters of every signal have in common. */
export interface SignalExporter<T> {
  export(items: T, done: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** What {@link LazyExporter} needs. */
interface LazyOptions<T> {
  /** `traces`, `metrics` or `logs`. */
  readonly signal: string;
  /** Its host is for the log; the rest may hold a password. */
  readonly endpoint: string;
  readonly load: () => Promise<SignalExporter<T>>;
  readonly log: Logger;
}

/**
 * An exporter whose packages load with the first batch, so that a service without a collector never
 * pays for them. A collector that does not answer costs one warning per outage and what it did not
 * take, nothing else.
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
      (exporter) => exporter.export(items, (result) => done(this.#noted(result))),
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

  #noted(result: ExportResult): ExportResult {
    const { signal, log } = this.#options;
    const endpoint = URL.parse(this.#options.endpoint)?.host;
    const failed = result.code !== ExportResultCode.SUCCESS;
    if (failed && !this.#failing) {
      this.#failing = true;
      log.warn(
        { endpoint, signal, problem: result.error?.message },
        `The collector does not take ${signal}; they are dropped until it does.`,
      );
    }
    if (!failed && this.#failing) {
      this.#failing = false;
      log.info({ endpoint, signal }, `The collector takes ${signal} again.`);
    }
    return result;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
