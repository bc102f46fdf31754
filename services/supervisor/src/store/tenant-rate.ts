import { rateLimited, type TenantRate, tenantRateLimit } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import { isOfWrongClock } from '../domain/clock/wrong-clock.ts';
import type { SupervisorStore, SupervisorTransaction } from './supervisor-store.ts';

/** Limit of tenants with local tokens; the tokens of an evicted tenant are lost. */
const MAX_TENANTS = 10_000;
/** A replica takes at most this fraction of the tokens per second from the store at a time. */
const PART_OF_SECOND = 0.1;

interface Stock {
  /** Tokens taken from the store and not used yet. */
  tokens: number;
  /** Time until which the bucket in the store is empty, by the monotonic clock of this process, ms. */
  emptyUntil: number;
  taking: Promise<void> | undefined;
}

/**
 * Creates a rate limit for the calls of each tenant across all replicas: each replica takes some tokens at a time from
 * one bucket in the store. If the store does not support replicas, the bucket is in memory.
 * @throws OverloadedError RATE_LIMITED with `retry_after_ms`; UnavailableError when the store is unreachable (both
 *   from the returned function)
 */
export function createTenantRate(
  store: SupervisorStore,
  rate: TenantRate,
  clock: Clock,
): (tenant: string) => void | Promise<void> {
  if (!store.replicas.shared) return tenantRateLimit(rate, clock);
  const stocks = new Map<string, Stock>();
  const take = async (tenant: string, stock: Stock): Promise<void> => {
    const at = clock.now();
    const askedAt = clock.monotonicMs();
    const left = await store.transaction((trx) => takeTokens(trx, tenant, rate, at), {
      resource: `rate:${tenant}`,
      background: true,
    });
    stock.tokens += left.taken;
    stock.emptyUntil = askedAt + left.waitMs;
  };
  return async (tenant) => {
    const stock = stocks.get(tenant) ?? {
      tokens: 0,
      emptyUntil: Number.NEGATIVE_INFINITY,
      taking: undefined,
    };
    stocks.delete(tenant);
    stocks.set(tenant, stock);
    const [oldest] = stocks.keys();
    if (stocks.size > MAX_TENANTS && oldest !== undefined) stocks.delete(oldest);
    while (stock.tokens < 1) {
      const waitMs = stock.emptyUntil - clock.monotonicMs();
      if (waitMs > 0) throw rateLimited(tenant, rate.perSecond, Math.ceil(waitMs));
      stock.taking ??= take(tenant, stock).finally(() => {
        stock.taking = undefined;
      });
      await stock.taking;
    }
    stock.tokens -= 1;
  };
}

/**
 * Fills the tenant's bucket up to `at` and takes at most a tenth of the tokens per second, or one token if that is
 * more. Returns the number of tokens taken, and the time until a token is available if none was taken.
 */
async function takeTokens(
  trx: SupervisorTransaction,
  tenant: string,
  { perSecond, burst }: TenantRate,
  at: Date,
): Promise<{ readonly taken: number; readonly waitMs: number }> {
  const row = await trx
    .selectFrom('tenant_rates')
    .select(['tokens', 'filled_at'])
    .where('tenant', '=', tenant)
    .executeTakeFirst();
  const recorded = row?.filled_at ?? at;
  const filled = plausible(recorded, at);
  const elapsed = Math.max(0, at.getTime() - filled.getTime());
  const tokens = Math.min(burst, (row?.tokens ?? burst) + (elapsed * perSecond) / 1_000);
  const most = Math.max(1, Math.floor(perSecond * PART_OF_SECOND));
  const taken = Math.min(Math.floor(tokens), most);
  const waitMs = taken < 1 ? ((1 - tokens) * 1_000) / perSecond : 0;
  // If no token is available, the row is written only to correct a time that a wrong clock recorded.
  if (taken < 1 && filled === recorded) return { taken, waitMs };
  const bucket = { tokens: tokens - taken, filled_at: filled > at ? filled : at };
  await trx
    .insertInto('tenant_rates')
    .values({ tenant, ...bucket })
    .onConflict((conflict) => conflict.column('tenant').doUpdateSet(bucket))
    .execute();
  return { taken, waitMs };
}

/**
 * Returns the time up to which the bucket was filled. A recorded time that is slightly ahead is kept, so that no
 * interval adds tokens twice; a time that only a wrong clock can have recorded is replaced by `at`, so that it does not
 * keep the bucket empty.
 */
function plausible(recorded: Date, at: Date): Date {
  return isOfWrongClock(recorded, at) ? at : recorded;
}
