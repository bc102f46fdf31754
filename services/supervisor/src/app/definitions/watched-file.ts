import { readFile } from 'node:fs/promises';
import { ConfigError, type YamlInput } from '@writ/config';

/** A document as text, with the name that messages call it. */
export interface DocumentText {
  readonly text: string;
  readonly file: string;
}

/**
 * A document that may be changed while the service runs. It is read anew at each look, since what
 * tells of changes differs between local disks, mounted volumes and files that are links.
 */
export class FollowedFile {
  readonly #input: YamlInput;
  /** What was given last. */
  #given: string | undefined;
  /** What stood there at the last look, or why it could not be read. */
  #found: string | undefined;

  constructor(input: YamlInput) {
    this.#input = input;
  }

  /**
   * The document as it stands.
   * @throws ConfigError when the file cannot be read
   */
  async read(): Promise<DocumentText> {
    const document = typeof this.#input === 'string' ? await readText(this.#input) : this.#input;
    this.#given = document.text;
    return document;
  }

  /**
   * The document when it is another one than was given last, undefined otherwise. A change counts
   * once two looks found the same: one that is being written may read well and lack its end.
   * @throws ConfigError when the file cannot be read, once for each time it went away
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
