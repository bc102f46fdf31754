import { readFileSync } from 'node:fs';
import type { Logger, Metrics } from '@writ/telemetry';
import { type CertificateUse, Expiry, observeExpiry } from './expiry.ts';
import {
  badTlsFile,
  readMaterial,
  type TlsFileNames,
  type TlsMaterial,
  type TlsTexts,
} from './tls-material.ts';

/** Options of {@link TlsFiles.open}. */
export interface TlsFilesOptions extends TlsFileNames {
  readonly log: Logger;
  /** Records the time until the certificates expire. */
  readonly metrics?: Metrics;
  /** The use of the certificate, for metrics and the log; default `service`. */
  readonly use?: CertificateUse;
  /**
   * Throws if the material is valid but must not be used by this process, such as the certificate of another service.
   */
  readonly accept?: (material: TlsMaterial) => void;
  /** Poll interval for changed files, ms. Default 2,000. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;

/**
 * A certificate, its key and the authorities, loaded from files. Changed files are reloaded; while they
 * are invalid, the previous ones stay in use and one error is logged.
 */
export class TlsFiles {
  readonly #options: TlsFilesOptions;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  readonly #timer: NodeJS.Timeout;
  readonly #expiry: Expiry;
  #isClosed = false;
  #texts: TlsTexts;
  #current: TlsMaterial;
  /** The last invalid content of the files, and whether it was logged. */
  #invalid: { readonly content: string; readonly logged: boolean } | undefined;

  private constructor(options: TlsFilesOptions) {
    this.#options = options;
    this.#texts = readTexts(options);
    this.#current = this.#read(this.#texts);
    this.#timer = setInterval(() => this.#poll(), options.pollMs ?? POLL_MS);
    this.#timer.unref();
    this.#log('TLS certificate loaded');
    const { metrics, use = 'service' } = options;
    this.#expiry = new Expiry({ ...options, use });
    this.#expiry.check(this.#current, Date.now());
    const inUse = (): TlsMaterial | undefined => (this.#isClosed ? undefined : this.#current);
    if (metrics !== undefined) observeExpiry(metrics, use, inUse);
  }

  /**
   * Loads the files.
   * @throws PreconditionError INVALID_TLS_FILE naming the file, and the error of `accept`
   */
  static open(options: TlsFilesOptions): TlsFiles {
    return new TlsFiles(options);
  }

  /** The material for new connections. */
  get current(): TlsMaterial {
    return this.#current;
  }

  /** Calls `listener` after every reload, until the returned function is called. */
  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Stops polling. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#listeners.clear();
  }

  #poll(): void {
    this.#reload();
    this.#expiry.check(this.#current, Date.now());
  }

  #reload(): void {
    let content = '';
    try {
      const texts = readTexts(this.#options);
      content = JSON.stringify(texts);
      if (content === JSON.stringify(this.#texts)) {
        this.#invalid = undefined;
        return;
      }
      this.#current = this.#read(texts);
      this.#texts = texts;
      this.#invalid = undefined;
    } catch (error) {
      this.#keepCurrent(content, error);
      return;
    }
    this.#log('TLS files reloaded');
    for (const listener of this.#listeners) listener(this.#current);
  }

  /**
   * Keeps the current material. Logs the error only if the next poll finds the same invalid content, because files that
   * are replaced one by one are inconsistent for a moment.
   */
  #keepCurrent(content: string, error: unknown): void {
    const isRepeated = this.#invalid?.content === content;
    if (isRepeated && this.#invalid?.logged === false) {
      const why = error instanceof Error ? error.message : String(error);
      const message = 'reloaded TLS files are invalid; keeping the previous ones';
      this.#options.log.error({ why }, message);
    }
    this.#invalid = { content, logged: isRepeated };
  }

  #read(texts: TlsTexts): TlsMaterial {
    const material = readMaterial(this.#options, texts, new Date());
    this.#options.accept?.(material);
    return material;
  }

  #log(message: string): void {
    const { certFile, log } = this.#options;
    log.info({ file: certFile, not_after: this.#current.own.notAfter.toISOString() }, message);
  }
}

function readTexts({ certFile, keyFile, caFile }: TlsFileNames): TlsTexts {
  return {
    cert: readText(certFile),
    key: readText(keyFile),
    ...(caFile !== undefined && { ca: readText(caFile) }),
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw badTlsFile(file, `cannot be read (${code})`, cause);
  }
}
