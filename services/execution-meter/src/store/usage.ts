import { int64 } from '@writ/store';
import { sql } from 'kysely';
import type { TokenUsage } from '../domain/ledger/spending.ts';
import type { MeterReader } from './meter-store.ts';

/** Groupings of usage (EM-10). */
export type UsageGrouping = 'agent' | 'run' | 'session' | 'tenant' | 'model' | 'day';

/** Filter of a usage query; absent fields do not filter. */
export interface UsageFilter {
  readonly tenant: string;
  readonly runId?: string;
  readonly sessionId?: string;
  readonly agentInstance?: string;
  readonly model?: string;
  /** Settled at or after this time. */
  readonly from?: Date;
  /** Settled before this time. */
  readonly until?: Date;
}

/** One page of sums. */
export interface UsageQuery {
  readonly filter: UsageFilter;
  readonly groups: readonly UsageGrouping[];
  readonly offset: number;
  readonly limit: number;
}

/** Sum of one group; fields outside the grouping are empty. */
export interface UsageSum {
  readonly tenant: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agentName: string;
  readonly agentInstance: string;
  readonly model: string;
  readonly day: string;
  readonly usage: TokenUsage;
  readonly cost: bigint;
  readonly turns: bigint;
  readonly estimatedTurns: bigint;
  readonly failedCalls: bigint;
}

const COLUMNS = {
  agent: ['agent_name', 'agent_instance'],
  run: ['run_id'],
  session: ['session_id'],
  tenant: ['tenant'],
  model: ['model'],
  day: ['day'],
} as const satisfies Record<UsageGrouping, readonly string[]>;

/** Sums settled usage, ordered by the grouping (EM-10). */
export async function sumUsage(
  db: MeterReader,
  { filter, groups, offset, limit }: UsageQuery,
): Promise<UsageSum[]> {
  const columns = groups.flatMap((group) => COLUMNS[group]);
  let query = db
    .selectFrom('entries')
    .select(columns)
    .select((column) => [
      column.fn.sum('input_tokens').as('input'),
      column.fn.sum('cached_input_tokens').as('cached'),
      column.fn.sum('cache_write_input_tokens').as('cache_write'),
      column.fn.sum('output_tokens').as('output'),
      column.fn.sum('reasoning_tokens').as('reasoning'),
      column.fn.sum('cost').as('cost'),
      column.fn.sum('turns').as('turns'),
      sql`sum(case when estimated then turns else 0 end)`.as('estimated_turns'),
      sql`sum(case when failed then 1 else 0 end)`.as('failed_calls'),
      column.fn.countAll().as('entries'),
    ])
    .where('tenant', '=', filter.tenant)
    .where('state', '=', 'settled');
  if (filter.runId !== undefined) query = query.where('run_id', '=', filter.runId);
  if (filter.sessionId !== undefined) query = query.where('session_id', '=', filter.sessionId);
  if (filter.agentInstance !== undefined) {
    query = query.where('agent_instance', '=', filter.agentInstance);
  }
  if (filter.model !== undefined) query = query.where('model', '=', filter.model);
  if (filter.from !== undefined) query = query.where('ended_at', '>=', filter.from);
  if (filter.until !== undefined) query = query.where('ended_at', '<', filter.until);
  if (columns.length > 0) query = query.groupBy(columns).orderBy(columns);
  const rows = await query.offset(offset).limit(limit).execute();
  return rows
    .filter((row) => int64(row.entries) > 0n)
    .map((row) => ({
      tenant: row.tenant ?? '',
      runId: row.run_id ?? '',
      sessionId: row.session_id ?? '',
      agentName: row.agent_name ?? '',
      agentInstance: row.agent_instance ?? '',
      model: row.model ?? '',
      day: row.day ?? '',
      usage: {
        input: int64(row.input),
        cachedInput: int64(row.cached),
        cacheWrite: int64(row.cache_write),
        output: int64(row.output),
        reasoning: int64(row.reasoning),
      },
      cost: int64(row.cost),
      turns: int64(row.turns),
      estimatedTurns: int64(row.estimated_turns),
      failedCalls: int64(row.failed_calls),
    }));
}
