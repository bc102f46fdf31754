import { type Command, Option } from 'commander';

/**
 * The output format of a command: `text` is a summary for people; `json` and `yaml` contain the complete message of the
 * JSON API.
 */
export type Format = 'text' | 'json' | 'yaml';

/** The option of commands that print data. */
export interface FormatOptions {
  readonly output: Format;
}

/** Adds the option `--output`. */
export function withFormat(command: Command): Command {
  return command.addOption(
    new Option('-o, --output <format>', 'output format: text, json or yaml')
      .choices(['text', 'json', 'yaml'])
      .default('text'),
  );
}
