import { ConfigError } from '@writ/config';
import { isWritError } from '@writ/kernel';
import { formatProblem, PolicyError } from '@writ/policy';

/** A problem in the configuration files of a platform. */
export interface Finding {
  /** An `error` makes the configuration invalid; a `warning` marks a valid setting that is probably a mistake. */
  readonly severity: 'error' | 'warning';
  /** One sentence; it begins with `file:line:column` when the position is known. */
  readonly text: string;
}

/** Collects findings. When a file cannot be read, the other files are still checked. */
export class Findings {
  readonly #all: Finding[] = [];

  /** Returns the findings without duplicates, errors before warnings. */
  get all(): readonly Finding[] {
    const texts = new Set<string>();
    const distinct = this.#all.filter(({ text }) => !texts.has(text) && texts.add(text));
    return [
      ...distinct.filter(({ severity }) => severity === 'error'),
      ...distinct.filter(({ severity }) => severity === 'warning'),
    ];
  }

  error(text: string): void {
    this.#all.push({ severity: 'error', text });
  }

  warn(text: string): void {
    this.#all.push({ severity: 'warning', text });
  }

  /**
   * Returns the result of `read`. When `read` throws a configuration error, adds its problems as findings and returns
   * undefined.
   */
  async collect<T>(read: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof ConfigError) for (const problem of error.problems) this.error(problem);
      else if (error instanceof PolicyError)
        for (const problem of error.problems) this.error(formatProblem(problem));
      else if (isWritError(error)) this.error(error.message);
      else throw error;
      return undefined;
    }
  }
}
