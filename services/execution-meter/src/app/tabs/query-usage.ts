import type { MeterContext } from '../../context.ts';
import { sumUsage, type UsageQuery, type UsageSum } from '../../store/usage.ts';

/**
 * Sums settled usage by agent, run, session, tenant, model or day (EM-10). Returns one page of the sums, and whether
 * more pages follow.
 */
export async function queryUsage(
  { store }: Pick<MeterContext, 'store'>,
  query: UsageQuery,
): Promise<{ readonly sums: readonly UsageSum[]; readonly hasMore: boolean }> {
  const { limit } = query;
  const sums = await sumUsage(store.db, { ...query, limit: limit + 1 });
  return { sums: sums.slice(0, limit), hasMore: sums.length > limit };
}
