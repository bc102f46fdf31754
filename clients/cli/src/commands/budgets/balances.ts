import type { MessageInitShape } from '@bufbuild/protobuf';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import {
  GetBalancesResponseSchema,
  GetRunUsageResponseSchema,
  type SetCapsRequestSchema,
  SetCapsResponseSchema,
} from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { budgetOf } from '../../output/budget.ts';
import type { BudgetOptions } from '../../output/budget-options.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { table } from '../../output/table.ts';
import { BALANCE_COLUMNS } from './balance-columns.ts';

/** Options of `writ budgets get`. */
export interface GetOptions extends ClientOptions, FormatOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly tenant?: string;
}

/** Options of `writ budgets set`. */
export interface SetOptions extends ClientOptions, FormatOptions, BudgetOptions {
  readonly run?: string;
  readonly session?: string;
  readonly tenant?: string;
  readonly day?: boolean;
  readonly month?: boolean;
  readonly remove?: boolean;
  readonly requestId?: string;
}

/**
 * Prints the amounts spent, reserved and left for a run, a session or the tenant.
 * @throws InvalidRequestError INVALID_OPTION
 */
export async function getBalances(options: GetOptions, io: CliIo): Promise<Exit> {
  const { run: runId, agent: agentInstance = '', session: sessionId = '' } = options;
  checkLevel(options);
  const { usage } = openClient(options, io);
  if (runId === undefined) {
    const value = await usage.getBalances({ sessionId, tenant: options.tenant ?? '' });
    const balances = { schema: GetBalancesResponseSchema, value };
    show(io, options, balances, () => table(BALANCE_COLUMNS, value.levels));
  } else {
    const value = await usage.getRunUsage({ runId, agentInstance });
    const tab = { schema: GetRunUsageResponseSchema, value };
    show(io, options, tab, () => table(BALANCE_COLUMNS, value.tab?.levels ?? []));
  }
  return EXIT.success;
}

/**
 * Sets the caps of a run, a session, or each day or month of a tenant.
 * @throws InvalidRequestError INVALID_OPTION, INVALID_AMOUNT
 */
export async function setCaps(options: SetOptions, io: CliIo): Promise<Exit> {
  const value = await openClient(options, io).usage.setCaps(capsRequest(options));
  show(io, options, { schema: SetCapsResponseSchema, value }, () =>
    table(BALANCE_COLUMNS, value.balance === undefined ? [] : [value.balance]),
  );
  return EXIT.success;
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
 * @throws InvalidRequestError INVALID_OPTION unless exactly one level is given, unless either caps or --remove is
 *   given, and for an invalid count; INVALID_AMOUNT
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
