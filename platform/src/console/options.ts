import { parseArgs } from 'node:util';
import { InvalidRequestError } from '@writ/kernel';

/** Options of `npm start` and `npm run demo`, after `--`. */
export interface ConsoleOptions {
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

/** Options that a program accepts; others are rejected. */
export type OptionName = 'json' | 'exit' | 'no-demo' | 'example' | 'script' | 'human';

const KINDS = {
  json: { type: 'boolean' },
  exit: { type: 'boolean' },
  'no-demo': { type: 'boolean' },
  example: { type: 'string' },
  script: { type: 'string' },
  human: { type: 'string' },
} as const satisfies Record<OptionName, { type: 'boolean' | 'string' }>;

/**
 * Parses the arguments of a program.
 *
 * @throws InvalidRequestError that names the argument and the valid options
 */
export function readOptions(args: readonly string[], taken: readonly OptionName[]): ConsoleOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: Object.fromEntries(taken.map((name) => [name, KINDS[name]])),
    });
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
      `${sentence}; the options are ${taken.map((name) => `--${name}`).join(', ')}.`,
      { field: 'arguments' },
    );
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
