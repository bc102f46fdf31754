import { ConfigError } from '@writ/config';
import { isWritError } from '@writ/kernel';
import { formatProblem, PolicyError } from '@writ/policy';

/** Something wrong with the files of a platform. */
export interface Finding {
  /** An error stops what it concerns; a warning is valid and suspicious. */
  readonly severity: 'error' | 'warning';
  /** One sentence, which begins with `file:line:column` where it has a place. */
  readonly text: string;
}

/** Collects findings; a file that cannot be read does not keep the others from being checked. */
export class Findings {
  readonly #all: Finding[] = [];

  /** Without repetitions, errors first. */
  get all(): readonly Finding[] {
    const texts = new Set<string>();
    const once = this.#all.filter(({ text }) => !texts.has(text) && texts.add(text));
    return [
      ...once.filter(({ severity }) => severity === 'error'),
      ...once.filter(({ severity }) => severity === 'warning'),
    ];
  }

  error(text: string): void {
    this.#all.push({ severity: 'error', text });
  }

  warn(text: string): void {
    this.#all.push({ severity: 'warning', text });
  }

  /** What `read` returns; undefined when it throws an error of settings, whose problems are added. */
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
