import { parseArgs } from 'node:util';
import { InvalidRequestError } from '@writ/kernel';

/** What `npm start` and `npm run demo` take after `--`. */
export interface ConsoleOptions {
  /** Print one JSON object instead of the run as it happens. */
  readonly json: boolean;
  /** Leave once the run has ended. */
  readonly exit: boolean;
  /** Start no run. */
  readonly noDemo: boolean;
  /** Name of an example's folder. */
  readonly example: string;
  /** Script that the simulated model follows; the example's own when not given. */
  readonly script: string | undefined;
  /** Who answers approvals: `approve`, `reject`, `cap:USD` or `ask`. */
  readonly human: string | undefined;
}

/** Which of the options a program takes; the others are refused. */
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
 * Reads a program's arguments.
 *
 * @throws InvalidRequestError that names the argument and the options there are
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
