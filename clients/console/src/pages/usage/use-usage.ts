import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { useQuery } from '@tanstack/react-query';
import { UsageGroup } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { useApi } from '../../session/session-provider.tsx';

/** The usage of one agent instance with one model on one UTC day. */
export interface UsageDay {
  readonly day: string;
  readonly agent: string;
  readonly model: string;
  readonly tenant: string;
  readonly tokens: bigint;
  readonly turns: bigint;
  readonly failed: bigint;
  readonly costNanoUsd: bigint;
}

/** A dimension of the tables. */
export type Dimension = 'agent' | 'model' | 'tenant' | 'day';

/** The sum of one agent, model, tenant or day. */
export interface Sum {
  readonly name: string;
  readonly tokens: bigint;
  readonly turns: bigint;
  readonly failed: bigint;
  readonly costNanoUsd: bigint;
}

const DAY_MS = 86_400_000;
const PAGE_ROWS = 1_000;
const MAX_PAGES = 20;
/** Maximum number of rows that are read. */
export const MAX_ROWS = MAX_PAGES * PAGE_ROWS;

/** The last UTC days including today, oldest first, as `YYYY-MM-DD`. */
export function daysBack(days: number): string[] {
  const now = Date.now();
  return Array.from({ length: days }, (_, index) =>
    new Date(now - (days - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
}

/** The rows of a period, and whether more than {@link MAX_ROWS} exist. */
interface Usage {
  readonly rows: readonly UsageDay[];
  readonly hasMore: boolean;
}

/**
 * Returns the usage of the last days by day, agent instance, model and tenant. A row contains the name of the agent,
 * not the instance.
 */
export function useUsage(days: number, tenant: string) {
  const { usage } = useApi();
  return useQuery({
    queryKey: ['usage', days, tenant],
    queryFn: async ({ signal }): Promise<Usage> => {
      const [first = ''] = daysBack(days);
      const rows: UsageDay[] = [];
      let pageToken = '';
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const answer = await usage.queryUsage(
          {
            tenant,
            groupBy: [UsageGroup.DAY, UsageGroup.AGENT, UsageGroup.MODEL, UsageGroup.TENANT],
            startTime: timestampFromDate(new Date(`${first}T00:00:00Z`)),
            pageSize: PAGE_ROWS,
            pageToken,
          },
          { signal },
        );
        for (const { day, agent, model, tenant: rowTenant, totals } of answer.rows) {
          rows.push({
            day,
            agent: agent?.name ?? '',
            model,
            tenant: rowTenant,
            tokens: (totals?.usage?.inputTokens ?? 0n) + (totals?.usage?.outputTokens ?? 0n),
            turns: totals?.turns ?? 0n,
            failed: totals?.failedCalls ?? 0n,
            costNanoUsd: totals?.costNanoUsd ?? 0n,
          });
        }
        pageToken = answer.nextPageToken;
        if (pageToken === '') break;
      }
      return { rows, hasMore: pageToken !== '' };
    },
  });
}

/** The balances of the tenant's day and month. */
export function useBalances(tenant: string) {
  const { usage } = useApi();
  return useQuery({
    queryKey: ['balances', tenant],
    queryFn: async ({ signal }) => (await usage.getBalances({ tenant }, { signal })).levels,
  });
}

/** Sums by one dimension, most expensive first; days newest first. */
export function sumBy(rows: readonly UsageDay[], dimension: Dimension): readonly Sum[] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const name = row[dimension];
    sums.set(name, added(sums.get(name) ?? { ...ZERO, name }, row));
  }
  return [...sums.values()].sort((left, right) =>
    dimension === 'day'
      ? right.name.localeCompare(left.name)
      : Number(right.costNanoUsd - left.costNanoUsd),
  );
}

/** The sum of all rows. */
export function totalOf(rows: readonly UsageDay[]): Sum {
  return rows.reduce(added, ZERO);
}

const ZERO: Sum = { name: '', tokens: 0n, turns: 0n, failed: 0n, costNanoUsd: 0n };

function added(sum: Sum, row: UsageDay): Sum {
  return {
    name: sum.name,
    tokens: sum.tokens + row.tokens,
    turns: sum.turns + row.turns,
    failed: sum.failed + row.failed,
    costNanoUsd: sum.costNanoUsd + row.costNanoUsd,
  };
}
