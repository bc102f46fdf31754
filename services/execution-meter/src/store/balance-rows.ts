import { omitUndefined } from '@writ/kernel';
import { prepareQuery, prepareWrite } from '@writ/store';
import type { Selectable } from 'kysely';
import type { Caps } from '../domain/ledger/amount.ts';
import { type Balance, type Change, type Level, NO_CHANGE } from '../domain/ledger/balance.ts';
import { afterSlices, capsIds, type LevelIds, type LevelsKey, rowIds } from './level-ids.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { BalanceTable } from './schema.ts';

type Sums = ReturnType<typeof sumColumns>;

/**
 * Whether a change only affects reserved amounts. About half of all changes are of this kind, and their statements
 * write only a fifth of the columns.
 */
export function holdsOnly({ used, debt, usage, estimatedTurns, failedCalls }: Change): boolean {
  const { used: none, usage: noUsage } = NO_CHANGE;
  const isUnused = used === none && debt === none && usage === noUsage;
  return isUnused && estimatedTurns === 0n && failedCalls === 0n;
}

/** Returns the columns of the reserved amounts of a change. */
export function heldColumns({ reserved }: Change) {
  return {
    reserved_tokens: reserved.tokens,
    reserved_cost: reserved.cost,
    reserved_turns: reserved.turns,
  };
}

/** Returns the columns of all amounts of a change. */
export function sumColumns(change: Change) {
  return {
    used_tokens: change.used.tokens,
    used_cost: change.used.cost,
    used_turns: change.used.turns,
    ...heldColumns(change),
    debt_tokens: change.debt.tokens,
    debt_cost: change.debt.cost,
    debt_turns: change.debt.turns,
    input_tokens: change.usage.input,
    cached_input_tokens: change.usage.cachedInput,
    cache_write_input_tokens: change.usage.cacheWrite,
    output_tokens: change.usage.output,
    reasoning_tokens: change.usage.reasoning,
    estimated_turns: change.estimatedTurns,
    failed_calls: change.failedCalls,
  };
}

/** The agent and the run of a new tab with their caps. */
interface OpenedRun {
  readonly agent: string;
  readonly agent_tokens: bigint | null;
  readonly agent_cost: bigint | null;
  readonly agent_turns: bigint | null;
  readonly run: string;
  readonly run_tokens: bigint | null;
  readonly run_cost: bigint | null;
  readonly run_turns: bigint | null;
}

/** The levels of a new tab with their caps. */
interface OpenedLevels extends OpenedRun {
  readonly session: string;
  readonly session_tokens: bigint | null;
  readonly session_cost: bigint | null;
  readonly session_turns: bigint | null;
}

/** The rows of the agent and of the run of a new tab. */
function runRows(row: OpenedRun) {
  return [
    {
      id: row.agent,
      cap_tokens: row.agent_tokens,
      cap_cost: row.agent_cost,
      cap_turns: row.agent_turns,
    },
    { id: row.run, cap_tokens: row.run_tokens, cap_cost: row.run_cost, cap_turns: row.run_turns },
  ];
}

/** Inserts the missing levels of a tab, and returns the ids of the inserted rows. */
export const insertLevels = prepareQuery((db: MeterReader, row: OpenedLevels) =>
  db
    .insertInto('balances')
    .values([
      ...runRows(row),
      {
        id: row.session,
        cap_tokens: row.session_tokens,
        cap_cost: row.session_cost,
        cap_turns: row.session_turns,
      },
    ])
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id'),
);

/**
 * Inserts the missing rows of a new tab's agent, run and session slice, so that the first booking finds them. Returns
 * the ids of the inserted rows only.
 */
export const insertRun = prepareQuery(
  (db: MeterReader, row: OpenedRun & { readonly session: string }) =>
    db
      .insertInto('balances')
      .values([
        ...runRows(row),
        { id: row.session, cap_tokens: null, cap_cost: null, cap_turns: null },
      ])
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id'),
);

/** Updates the caps of a level. */
export const updateCaps = prepareWrite(
  (db: MeterReader, row: Pick<BalanceTable, 'id' | 'cap_tokens' | 'cap_cost' | 'cap_turns'>) =>
    db
      .updateTable('balances')
      .set({ cap_tokens: row.cap_tokens, cap_cost: row.cap_cost, cap_turns: row.cap_turns })
      .where('id', '=', row.id),
);

interface CapsIds {
  readonly day_caps: string;
  readonly month_caps: string;
}

/**
 * Reads the rows of all levels, including all slices of the shared levels, and the rows with the caps of the tenant.
 */
export async function selectLevels(
  db: MeterReader,
  key: LevelsKey,
): Promise<readonly Selectable<BalanceTable>[]> {
  const ids = rowIds(key);
  const caps = capsIds(key.tenant);
  const { rows } = await selectRanges(db, {
    ...ids,
    day_caps: caps.tenant_day,
    month_caps: caps.tenant_month,
    after_session: afterSlices(ids.session),
    after_day: afterSlices(ids.tenant_day),
    after_month: afterSlices(ids.tenant_month),
  });
  return rows;
}

interface Ranges {
  readonly after_session: string;
  readonly after_day: string;
  readonly after_month: string;
}

const selectRanges = prepareQuery((db: MeterReader, ids: LevelIds & CapsIds & Ranges) =>
  db
    .selectFrom('balances')
    .selectAll()
    .where((row) =>
      row.or([
        row('id', 'in', [ids.agent, ids.run, ids.day_caps, ids.month_caps]),
        row.and([row('id', '>=', ids.session), row('id', '<', ids.after_session)]),
        row.and([row('id', '>=', ids.tenant_day), row('id', '<', ids.after_day)]),
        row.and([row('id', '>=', ids.tenant_month), row('id', '<', ids.after_month)]),
      ]),
    ),
);

/** Reads the rows that a slice books to, and the rows with the caps of the session and of the tenant. */
export const selectSlice = prepareQuery(
  (db: MeterReader, ids: LevelIds & CapsIds & { readonly session_caps: string }) =>
    db
      .selectFrom('balances')
      .selectAll()
      .where('id', 'in', [...inOrder(ids), ids.session_caps, ids.day_caps, ids.month_caps]),
);

/** Sums the settled amounts of all slices of a level except one; null if the level has no other slices. */
export const sumOthers = prepareQuery(
  (
    db: MeterReader,
    ids: { readonly level: string; readonly after: string; readonly own: string },
  ) =>
    db
      .selectFrom('balances')
      .select((column) => [
        column.fn.sum<bigint | null>('used_tokens').as('tokens'),
        column.fn.sum<bigint | null>('used_cost').as('cost'),
        column.fn.sum<bigint | null>('used_turns').as('turns'),
      ])
      .where('id', '>=', ids.level)
      .where('id', '<', ids.after)
      .where('id', '!=', ids.own),
);

/** Adds a change to all levels. */
export const addToAll = prepareQuery((db: MeterReader, values: LevelIds & Sums) =>
  adding(db, values).where('id', 'in', inOrder(values)),
);

/** Adds reserved amounts to all levels. */
export const addHoldToAll = prepareQuery(
  (db: MeterReader, values: LevelIds & ReturnType<typeof heldColumns>) =>
    db
      .updateTable('balances')
      .set((column) => ({
        reserved_tokens: column('reserved_tokens', '+', values.reserved_tokens),
        reserved_cost: column('reserved_cost', '+', values.reserved_cost),
        reserved_turns: column('reserved_turns', '+', values.reserved_turns),
      }))
      .where('id', 'in', inOrder(values)),
);

/** Adds a change to one level. */
export const addToOne = prepareQuery((db: MeterReader, values: Sums & { readonly id: string }) =>
  adding(db, values).where('id', '=', values.id),
);

function inOrder(ids: LevelIds): string[] {
  return [ids.agent, ids.run, ids.session, ids.tenant_day, ids.tenant_month];
}

function adding(db: MeterReader, sums: Sums) {
  return db.updateTable('balances').set((column) => ({
    used_tokens: column('used_tokens', '+', sums.used_tokens),
    used_cost: column('used_cost', '+', sums.used_cost),
    used_turns: column('used_turns', '+', sums.used_turns),
    reserved_tokens: column('reserved_tokens', '+', sums.reserved_tokens),
    reserved_cost: column('reserved_cost', '+', sums.reserved_cost),
    reserved_turns: column('reserved_turns', '+', sums.reserved_turns),
    debt_tokens: column('debt_tokens', '+', sums.debt_tokens),
    debt_cost: column('debt_cost', '+', sums.debt_cost),
    debt_turns: column('debt_turns', '+', sums.debt_turns),
    input_tokens: column('input_tokens', '+', sums.input_tokens),
    cached_input_tokens: column('cached_input_tokens', '+', sums.cached_input_tokens),
    cache_write_input_tokens: column(
      'cache_write_input_tokens',
      '+',
      sums.cache_write_input_tokens,
    ),
    output_tokens: column('output_tokens', '+', sums.output_tokens),
    reasoning_tokens: column('reasoning_tokens', '+', sums.reasoning_tokens),
    estimated_turns: column('estimated_turns', '+', sums.estimated_turns),
    failed_calls: column('failed_calls', '+', sums.failed_calls),
  }));
}

/** Returns the ids that have no row. */
export async function missingOf(trx: MeterTransaction, ids: readonly string[]): Promise<string[]> {
  const rows = await trx.selectFrom('balances').select('id').where('id', 'in', ids).execute();
  const existing = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => !existing.has(id));
}

/** Returns the columns of caps. */
export function capColumns(caps: Caps) {
  return {
    cap_tokens: caps.tokens ?? null,
    cap_cost: caps.cost ?? null,
    cap_turns: caps.turns ?? null,
  };
}

/** The caps of a level, and who set them at run time. */
export type LevelCaps = Pick<Balance, 'caps' | 'capsSetBy'>;

/** Returns the caps in a row. */
export function levelCaps(row: Selectable<BalanceTable>): LevelCaps {
  return {
    caps: omitUndefined({
      tokens: row.cap_tokens ?? undefined,
      cost: row.cap_cost ?? undefined,
      turns: row.cap_turns ?? undefined,
    }),
    capsSetBy: row.caps_set_by ?? undefined,
  };
}

/** Converts a row to the account of a level, with `caps` if given, else with the caps of the row. */
export function toBalance(level: Level, row: Selectable<BalanceTable>, caps?: LevelCaps): Balance {
  return {
    level,
    ...(caps ?? levelCaps(row)),
    used: { tokens: row.used_tokens, cost: row.used_cost, turns: row.used_turns },
    reserved: {
      tokens: row.reserved_tokens,
      cost: row.reserved_cost,
      turns: row.reserved_turns,
    },
    debt: { tokens: row.debt_tokens, cost: row.debt_cost, turns: row.debt_turns },
    usage: {
      input: row.input_tokens,
      cachedInput: row.cached_input_tokens,
      cacheWrite: row.cache_write_input_tokens,
      output: row.output_tokens,
      reasoning: row.reasoning_tokens,
    },
    estimatedTurns: row.estimated_turns,
    failedCalls: row.failed_calls,
  };
}
