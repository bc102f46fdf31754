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

/** What {@link TlsFiles.open} needs. */
export interface TlsFilesOptions extends TlsFileNames {
  readonly log: Logger;
  /** Takes how long the certificates are still good. */
  readonly metrics?: Metrics;
  /** Whose they are, in metrics and in the log; default `service`. */
  readonly use?: CertificateUse;
  /** Throws what is wrong with material that is whole but of no use here, such as another's. */
  readonly accept?: (material: TlsMaterial) => void;
  /** Between two looks for changed files, ms. Default 2,000. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;

/**
 * A certificate, its key and the authorities, as they stand in files now. Changed files are taken up
 * by themselves; while they do not fit together, what was good before stays, and the log says so once.
 */
export class TlsFiles {
  readonly #options: TlsFilesOptions;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  readonly #timer: NodeJS.Timeout;
  readonly #expiry: Expiry;
  #isClosed = false;
  #texts: TlsTexts;
  #current: TlsMaterial;
  /** What was seen last that could not be used, and whether the log says so. */
  #broken: { readonly sight: string; readonly told: boolean } | undefined;

  private constructor(options: TlsFilesOptions) {
    this.#options = options;
    this.#texts = readTexts(options);
    this.#current = this.#read(this.#texts);
    this.#timer = setInterval(() => this.#look(), options.pollMs ?? POLL_MS);
    this.#timer.unref();
    this.#tell('The TLS certificate was read.');
    const { metrics, use = 'service' } = options;
    this.#expiry = new Expiry({ ...options, use });
    this.#expiry.look(this.#current, Date.now());
    const inUse = (): TlsMaterial | undefined => (this.#isClosed ? undefined : this.#current);
    if (metrics !== undefined) observeExpiry(metrics, use, inUse);
  }

  /**
   * Reads the files.
   * @throws PreconditionError INVALID_TLS_FILE naming the file, and what `accept` throws
   */
  static open(options: TlsFilesOptions): TlsFiles {
    return new TlsFiles(options);
  }

  /** What new connections use. */
  get current(): TlsMaterial {
    return this.#current;
  }

  /** Calls `listener` with every new material, until the returned function is called. */
  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Looks at the files no more. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#listeners.clear();
  }

  #look(): void {
    this.#readAgain();
    this.#expiry.look(this.#current, Date.now());
  }

  #readAgain(): void {
    let sight = '';
    try {
      const texts = readTexts(this.#options);
      sight = JSON.stringify(texts);
      if (sight === JSON.stringify(this.#texts)) {
        this.#broken = undefined;
        return;
      }
      this.#current = this.#read(texts);
      this.#texts = texts;
      this.#broken = undefined;
    } catch (error) {
      this.#keep(sight, error);
      return;
    }
    this.#tell('New TLS files were read, and new connections use them.');
    for (const listener of this.#listeners) listener(this.#current);
  }

  /** Files that are replaced one after the other do not fit for a moment, which is nothing to tell. */
  #keep(sight: string, error: unknown): void {
    const isSecondLook = this.#broken?.sight === sight;
    if (isSecondLook && this.#broken?.told === false) {
      const why = error instanceof Error ? error.message : String(error);
      this.#options.log.error({ why }, 'Changed TLS files are of no use, so the old stay.');
    }
    this.#broken = { sight, told: isSecondLook };
  }

  #read(texts: TlsTexts): TlsMaterial {
    const material = readMaterial(this.#options, texts, new Date());
    this.#options.accept?.(material);
    return material;
  }

  #tell(sentence: string): void {
    const { certFile, log } = this.#options;
    log.info({ file: certFile, not_after: this.#current.own.notAfter.toISOString() }, sentence);
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
