import { WritError } from '@writ/kernel';

/** Mend the settings before starting again. Lists every problem found, not only the first. */
export class ConfigError extends WritError {
  readonly kind = 'invalid_argument';
  /** One sentence a problem. */
  readonly problems: readonly string[];

  /** @param subject what was read, such as `The environment` or a file's name */
  constructor(subject: string, problems: readonly string[], options?: ErrorOptions) {
    const message =
      problems.length === 1
        ? (problems[0] ?? '')
        : `${subject} has ${problems.length} problems:\n${problems.map((p) => `- ${p}`).join('\n')}`;
    super('INVALID_CONFIG', message, {}, options);
    this.problems = Object.freeze([...problems]);
  }
}
