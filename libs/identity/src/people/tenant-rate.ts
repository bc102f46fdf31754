import { type Clock, OverloadedError, systemClock } from '@writ/kernel';

/** Rate limit of one tenant. */
export interface TenantRate {
  /** Calls per second on average. */
  readonly perSecond: number;
  /** Maximum burst of calls. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  /** Time of the last refill, by the monotonic clock, ms. */
  filledAt: number;
}

/** Maximum tracked tenants; an evicted tenant starts with a full bucket. */
const MAX_TENANTS = 10_000;

/**
 * Creates a rate limiter per tenant: a token bucket of `burst` tokens that refills by `perSecond`.
 * @param errorOf returns the error of a rejected call
 * @throws OverloadedError RATE_LIMITED with `retry_after_ms` (from the function it returns)
 */
export function tenantRateLimit(
  { perSecond, burst }: TenantRate,
  clock: Clock = systemClock,
  errorOf = rateLimited,
): (tenant: string) => void {
  const buckets = new Map<string, Bucket>();
  return (tenant) => {
    const now = clock.monotonicMs();
    const bucket = buckets.get(tenant) ?? { tokens: burst, filledAt: now };
    // Reinserted at the end, so that the least recently active tenant is evicted first.
    buckets.delete(tenant);
    buckets.set(tenant, bucket);
    if (buckets.size > MAX_TENANTS) evictOldest(buckets);
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.filledAt) * perSecond) / 1_000);
    bucket.filledAt = now;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return;
    }
    const waitMs = Math.ceil(((1 - bucket.tokens) * 1_000) / perSecond);
    throw errorOf(tenant, perSecond, waitMs);
  };
}

/**
 * Rate of Halt, Resume and ListHalts of one tenant at each replica. A halt can take ten seconds, and at most 500 of these
 * calls of all tenants are in flight.
 */
const HALT_RATE: TenantRate = { perSecond: 20, burst: 40 };

/**
 * Creates the rate limiter for the halts of each tenant, so that the key of one tenant cannot use up the capacity that is
 * reserved for the halts of all (BD-2).
 * @throws OverloadedError RATE_LIMITED with `retry_after_ms` (from the function it returns)
 */
export function haltRateLimit(clock: Clock = systemClock): (tenant: string) => void {
  return tenantRateLimit(HALT_RATE, clock, haltsLimited);
}

/** The error for a call that may be retried in `waitMs`. */
export function rateLimited(tenant: string, perSecond: number, waitMs: number): OverloadedError {
  return new OverloadedError(
    'RATE_LIMITED',
    `Tenant ${tenant} exceeds its limit of ${perSecond} calls per second (WRIT_TENANT_RATE); retry in ${waitMs} ms.`,
    {
      setting: 'WRIT_TENANT_RATE',
      limit: String(perSecond),
      retry_after_ms: String(waitMs),
    },
  );
}

function haltsLimited(tenant: string, perSecond: number, waitMs: number): OverloadedError {
  return new OverloadedError(
    'RATE_LIMITED',
    `Tenant ${tenant} exceeds the limit of ${perSecond} calls of Halt, Resume and ListHalts per second; retry in ${waitMs} ms.`,
    { limit: String(perSecond), retry_after_ms: String(waitMs) },
  );
}

function evictOldest(buckets: Map<string, Bucket>): void {
  const [oldest] = buckets.keys();
  if (oldest !== undefined) buckets.delete(oldest);
}
