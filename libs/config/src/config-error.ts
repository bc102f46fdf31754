import { WritError } from '@writ/kernel';

/** Invalid settings, to be fixed before the next start. Lists every problem, not only the first. */
export class ConfigError extends WritError<'invalid_argument'> {
  readonly kind = 'invalid_argument';
  /** One sentence per problem. */
  readonly problems: readonly string[];

  /** @param subject the source of the settings, such as `The environment` or a file name */
  constructor(subject: string, problems: readonly string[], options?: ErrorOptions) {
    const message =
      problems.length === 1
        ? (problems[0] ?? '')
        : `${subject} has ${problems.length} problems:\n${problems.map((p) => `- ${p}`).join('\n')}`;
    super('INVALID_CONFIG', message, {}, options);
    this.problems = Object.freeze([...problems]);
  }
}
