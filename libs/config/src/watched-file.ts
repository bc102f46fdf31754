import { readFile } from 'node:fs/promises';
import { ConfigError } from './config-error.ts';
import type { YamlInput } from './yaml/yaml-source.ts';

/** The text of a document, and the name that messages use for it. */
export interface DocumentText {
  readonly text: string;
  readonly file: string;
}

/**
 * A document that may change while the service runs. The caller polls it with {@link WatchedFile.changed}, because
 * change notifications differ between local disks, mounted volumes and symbolic links.
 */
export class WatchedFile {
  readonly #input: YamlInput;
  /** The text returned last. */
  #given: string | undefined;
  /** The text, or the error, of the last poll. */
  #found: string | undefined;

  constructor(input: YamlInput) {
    this.#input = input;
  }

  /**
   * Reads the document.
   * @throws ConfigError when the file cannot be read
   */
  async read(): Promise<DocumentText> {
    const document = typeof this.#input === 'string' ? await readText(this.#input) : this.#input;
    this.#given = document.text;
    return document;
  }

  /**
   * Returns the document if it differs from the one returned last, otherwise undefined. A changed document is returned
   * only when two successive polls read the same text, because the file may still be being written.
   * @throws ConfigError when the file cannot be read; the same error is thrown only once until the file can be read
   *   again
   */
  async changed(): Promise<DocumentText | undefined> {
    if (typeof this.#input !== 'string') return undefined;
    try {
      const document = await readText(this.#input);
      const isSettled = document.text === this.#found;
      this.#found = document.text;
      if (!isSettled || document.text === this.#given) return undefined;
      this.#given = document.text;
      return document;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      if (this.#found === error.message) return undefined;
      this.#found = error.message;
      throw error;
    }
  }
}

async function readText(file: string): Promise<DocumentText> {
  try {
    return { text: await readFile(file, 'utf8'), file };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}
