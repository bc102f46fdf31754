import type { MessageInitShape } from '@bufbuild/protobuf';
import { wordOf } from '@writ/client/display';
import { BudgetLevel, type LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import {
  GetBalancesResponseSchema,
  GetRunUsageResponseSchema,
  type SetCapsRequestSchema,
  SetCapsResponseSchema,
} from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type BudgetOptions, budgetOf, withBudget } from '../../output/budget.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { type Column, table } from '../../output/table.ts';
import { usdText } from '../../output/text.ts';

interface GetOptions extends ClientOptions, FormatOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly tenant?: string;
}

interface SetOptions extends ClientOptions, FormatOptions, BudgetOptions {
  readonly run?: string;
  readonly session?: string;
  readonly tenant?: string;
  readonly day?: boolean;
  readonly month?: boolean;
  readonly remove?: boolean;
  readonly requestId?: string;
}

const COLUMNS: readonly Column<LevelBalance>[] = [
  { heading: 'LEVEL', text: ({ level }) => wordOf(BudgetLevel, level).replaceAll('_', ' ') },
  ...amounts('COST', {
    used: (one) => one.usedCostNanoUsd,
    reserved: (one) => one.reservedCostNanoUsd,
    remaining: (one) => one.remainingCostNanoUsd,
    text: usdText,
  }),
  ...amounts('TOKENS', {
    used: (one) => one.usedTokens,
    reserved: (one) => one.reservedTokens,
    remaining: (one) => one.remainingTokens,
    text: String,
  }),
  ...amounts('TURNS', {
    used: (one) => one.usedTurns,
    reserved: (one) => one.reservedTurns,
    remaining: (one) => one.remainingTurns,
    text: String,
  }),
  { heading: 'SET BY', text: ({ capsSetBy }) => capsSetBy },
];

/** `writ budgets`: what is spent, reserved and left at each level, and caps at run time (EM-3, PE-1). */
export const budgetCommands: CommandGroup = (program, io, done) => {
  const budgets = program.command('budgets').description('Caps, and what is left of them.');

  withFormat(withClientOptions(budgets.command('get')))
    .description('Show what is spent, reserved and left, of a run, of a session, or of the tenant.')
    .option('--run <id>', 'a run, with all levels that apply to it')
    .option('--agent <instance>', 'an agent of the run; default: the root')
    .option('--session <id>', 'a session')
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .action(async (options: GetOptions) => {
      const { run: runId, agent: agentInstance = '', session: sessionId = '' } = options;
      checkLevel(options);
      const { usage } = openClient(options, io);
      if (runId === undefined) {
        const value = await usage.getBalances({ sessionId, tenant: options.tenant ?? '' });
        const balances = { schema: GetBalancesResponseSchema, value };
        show(io, options, balances, () => table(COLUMNS, value.levels));
      } else {
        const value = await usage.getRunUsage({ runId, agentInstance });
        const tab = { schema: GetRunUsageResponseSchema, value };
        show(io, options, tab, () => table(COLUMNS, value.tab?.levels ?? []));
      }
      done(EXIT.success);
    });

  withBudget(withFormat(withClientOptions(budgets.command('set'))))
    .description(
      'Set the caps of a running run, of a session, or of the days or months of a tenant.',
    )
    .option('--run <id>', 'the run, such as to raise its budget before it is exhausted')
    .option('--session <id>', 'the session')
    .option('--day', 'each UTC day of the tenant; needs the role operator')
    .option('--month', 'each UTC month of the tenant; needs the role operator')
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .option('--remove', 'remove caps that were set, so that the configured caps apply again')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (options: SetOptions) => {
      const value = await openClient(options, io).usage.setCaps(capsRequest(options));
      show(io, options, { schema: SetCapsResponseSchema, value }, () =>
        table(COLUMNS, value.balance === undefined ? [] : [value.balance]),
      );
      done(EXIT.success);
    });
};

/** The columns of one dimension: used, reserved, left. */
function amounts(
  unit: string,
  of: {
    readonly used: (balance: LevelBalance) => bigint;
    readonly reserved: (balance: LevelBalance) => bigint;
    readonly remaining: (balance: LevelBalance) => bigint | undefined;
    readonly text: (amount: bigint) => string;
  },
): Column<LevelBalance>[] {
  const remaining = (balance: LevelBalance): string => {
    const left = of.remaining(balance);
    return left === undefined ? 'no cap' : of.text(left);
  };
  return [
    { heading: unit, isNumber: true, text: (one) => of.text(of.used(one)) },
    { heading: 'RESERVED', isNumber: true, text: (one) => of.text(of.reserved(one)) },
    { heading: 'LEFT', isNumber: true, text: remaining },
  ];
}

/** @throws InvalidRequestError INVALID_OPTION for an option that the chosen level does not have */
function checkLevel({ run, agent, session, tenant }: GetOptions): void {
  if (run === undefined && agent !== undefined)
    throw badOption('--agent requires --run: an agent belongs to a run.', '--agent');
  if (run !== undefined && (session ?? tenant) !== undefined)
    throw badOption('--run cannot be used with --session or --tenant.', '--run');
}

/**
 * The request of `writ budgets set`.
 * @throws InvalidRequestError INVALID_OPTION for no or several levels, for both or neither of caps and --remove, or for
 *   an invalid count; INVALID_USD
 */
function capsRequest(options: SetOptions): MessageInitShape<typeof SetCapsRequestSchema> {
  const { run = '', session = '', tenant = '', remove = false } = options;
  const { requestId = newId('req') } = options;
  const levels = [
    ...(run === '' ? [] : [BudgetLevel.RUN]),
    ...(session === '' ? [] : [BudgetLevel.SESSION]),
    ...(options.day ? [BudgetLevel.TENANT_DAY] : []),
    ...(options.month ? [BudgetLevel.TENANT_MONTH] : []),
  ];
  const [level] = levels;
  if (level === undefined || levels.length > 1)
    throw badOption('Exactly one of --run, --session, --day and --month is required.', '--run');
  const caps = budgetOf(options);
  if ((caps === undefined) !== remove)
    throw badOption('Either caps, such as --max-cost-usd, or --remove is required.', '--remove');
  return { requestId, tenant, level, runId: run, sessionId: session, ...(caps && { caps }) };
}

function badOption(sentence: string, field: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_OPTION', sentence, { field });
}
