import { parseArgs } from 'node:util';
import { InvalidRequestError } from '@writ/kernel';
import packageJson from '../../package.json' with { type: 'json' };

/** Options of `npm start` and `npm run demo`, after `--`. */
export interface TerminalOptions {
  /** Print one JSON object instead of live progress. */
  readonly json: boolean;
  /** Exit when the run has ended. */
  readonly exit: boolean;
  /** Start no run. */
  readonly noDemo: boolean;
  /** Name of the folder of an example. */
  readonly example: string;
  /** Script of the simulated model; default: that of the example. */
  readonly script: string | undefined;
  /** The approver: `approve`, `reject`, `cap:USD` or `ask`. */
  readonly human: string | undefined;
}

/** Options that a program accepts, in addition to `--help` and `--version`; others are rejected. */
export type OptionName = 'json' | 'exit' | 'no-demo' | 'example' | 'script' | 'human';

/** A program with options. */
export interface TerminalProgram {
  /** Command line that starts it. */
  readonly command: string;
  /** What it does, in one sentence. */
  readonly about: string;
  readonly options: readonly OptionName[];
}

interface Kind {
  readonly type: 'boolean' | 'string';
  /** Placeholder of the value. */
  readonly value?: string;
  readonly about: string;
}

const KINDS: Readonly<Record<OptionName | 'help' | 'version', Kind>> = {
  json: { type: 'boolean', about: 'print one JSON object instead of live progress' },
  exit: { type: 'boolean', about: 'exit when the run has ended; status 0 only for status ok' },
  'no-demo': { type: 'boolean', about: 'start no run' },
  example: { type: 'string', value: 'NAME', about: 'folder in examples/ (default refund-desk)' },
  script: { type: 'string', value: 'NAME', about: 'script of the simulated model' },
  human: {
    type: 'string',
    value: 'WHO',
    about:
      'ask (default with a terminal), or a simulated person: approve, reject or cap:USD (default cap:800)',
  },
  help: { type: 'boolean', about: 'print this help' },
  version: { type: 'boolean', about: 'print the version' },
};

/**
 * Parses the arguments of a program.
 *
 * @returns the options, or the text to print for `--help` and `--version`
 * @throws InvalidRequestError that names the argument and the valid options
 */
export function readOptions(
  args: readonly string[],
  program: TerminalProgram,
): TerminalOptions | string {
  const names = [...program.options, 'help', 'version'] as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: Object.fromEntries(names.map((name) => [name, { type: KINDS[name].type }])),
    });
    if (values.help === true) return helpOf(program);
    if (values.version === true) return `writ ${packageJson.version}`;
    return {
      json: values.json === true,
      exit: values.exit === true,
      noDemo: values['no-demo'] === true,
      example: textOf(values.example) ?? 'refund-desk',
      script: textOf(values.script),
      human: textOf(values.human),
    };
  } catch (error) {
    const sentence = error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error);
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `${sentence}; the options are ${names.map((name) => `--${name}`).join(', ')}.`,
      { field: 'arguments' },
    );
  }
}

function helpOf({ command, about, options }: TerminalProgram): string {
  const rows = [...options, 'help' as const, 'version' as const].map((name) => {
    const { value, about: meaning } = KINDS[name];
    return [`  --${name}${value === undefined ? '' : ` ${value}`}`, meaning] as const;
  });
  const width = Math.max(...rows.map(([option]) => option.length)) + 2;
  return [
    `Usage: ${command} -- [options]`,
    about,
    '',
    ...rows.map(([option, meaning]) => option.padEnd(width) + meaning),
    '',
    'Settings are environment variables, described in docs/reference/settings.md.',
  ].join('\n');
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
