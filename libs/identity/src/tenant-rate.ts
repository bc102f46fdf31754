import { type Clock, OverloadedError, systemClock } from '@writ/kernel';

/** How many calls of one tenant are taken. */
export interface TenantRate {
  /** On average. */
  readonly perSecond: number;
  /** At once, after a while of silence. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Tenants that are remembered; a full bucket that is forgotten is a full bucket. */
const MOST_TENANTS = 10_000;

/**
 * Takes one call of a tenant, or refuses it: a bucket of `burst` tokens that fills by `perSecond`.
 * @throws OverloadedError RATE_LIMITED with `retry_after_ms` (from the function it returns)
 */
export function tenantRateLimit(
  { perSecond, burst }: TenantRate,
  clock: Clock = systemClock,
): (tenant: string) => void {
  const buckets = new Map<string, Bucket>();
  return (tenant) => {
    const now = clock.now().getTime();
    const bucket = buckets.get(tenant) ?? { tokens: burst, filledAt: now };
    // The tenant that called last comes last, so that the quietest are forgotten first.
    buckets.delete(tenant);
    buckets.set(tenant, bucket);
    if (buckets.size > MOST_TENANTS) forgetOldest(buckets);
    const elapsed = Math.max(0, now - bucket.filledAt);
    bucket.tokens = Math.min(burst, bucket.tokens + (elapsed * perSecond) / 1_000);
    bucket.filledAt = now;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return;
    }
    const waitMs = Math.ceil(((1 - bucket.tokens) * 1_000) / perSecond);
    throw rateLimited(tenant, perSecond, waitMs);
  };
}

/** The refusal of a call that came too early by `waitMs`. */
export function rateLimited(tenant: string, perSecond: number, waitMs: number): OverloadedError {
  return new OverloadedError(
    'RATE_LIMITED',
    `Tenant ${tenant} calls more often than ${perSecond} times a second (WRIT_TENANT_RATE); call again in ${waitMs} ms.`,
    {
      setting: 'WRIT_TENANT_RATE',
      limit: String(perSecond),
      retry_after_ms: String(waitMs),
    },
  );
}

function forgetOldest(buckets: Map<string, Bucket>): void {
  const [oldest] = buckets.keys();
  if (oldest !== undefined) buckets.delete(oldest);
}
