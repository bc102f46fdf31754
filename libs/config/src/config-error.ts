import { WritError } from '@writ/kernel';

/** Invalid settings in the environment or in a configuration file, at the start or when a file is reloaded. */
export class ConfigError extends WritError<'invalid_argument'> {
  readonly kind = 'invalid_argument';
  /** One sentence per problem. */
  readonly problems: readonly string[];

  /** @param subject what has the problems, such as `The environment`; begins the message if there are several */
  constructor(subject: string, problems: readonly string[], options?: ErrorOptions) {
    const message =
      problems.length === 1
        ? (problems[0] ?? '')
        : `${subject} has ${problems.length} problems:\n${problems.map((p) => `- ${p}`).join('\n')}`;
    super('INVALID_CONFIG', message, {}, options);
    this.problems = Object.freeze([...problems]);
  }
}
