import { type Command, Option } from 'commander';

/** How a command prints its data: for people, or whole and in the form of the JSON API. */
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
