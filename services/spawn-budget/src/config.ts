import { ConfigError, readEnv, variable } from '@writ/config';
import { SLOT_GRANT_TTL_MS } from '@writ/identity';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** The configuration of spawn-budget. Times are milliseconds. */
export interface SpawnBudgetConfig {
  /** Listener for services; port 0 selects a free port. */
  readonly host: string;
  readonly port: number;
  /** Directory of the signing key. */
  readonly dataDir: string;
  /** Rotation interval of the signing key; undefined: no rotation. */
  readonly keyRotationMs?: number | undefined;
  /** Tolerated clock difference between this service and others. */
  readonly clockLeewayMs?: number | undefined;
  readonly store: StoreLocation;
  /** Duration of a slot's lease (SB-8). */
  readonly leaseMs: number;
  /** Lifetime of a slot grant, after which a pause is effective against any worker (SB-4). */
  readonly grantTtlMs: number;
  /** Interval between two sweeps of expired leases. */
  readonly sweepMs: number;
  /** Retention of the pool of a run that has ended. */
  readonly keepClosedMs: number;
  /** Maximum wait for in-flight calls at shutdown. */
  readonly drainMs: number;
}

/** The default values; tests start from them. */
export const SPAWN_BUDGET_DEFAULTS = {
  host: '127.0.0.1',
  leaseMs: 15_000,
  grantTtlMs: SLOT_GRANT_TTL_MS,
  sweepMs: 1_000,
  keepClosedMs: 7 * 24 * 60 * 60_000,
  drainMs: 5_000,
} as const;

/**
 * Time by which a grant expires before its lease, in milliseconds, so that a verifier whose clock is behind by at most
 * this time rejects the grant before another agent gets the slot.
 */
export const GRANT_MARGIN_MS = 1_000;

/** Maximum duration of a lease; the slots of dead agents remain unavailable for up to this time (SB-8). */
const LONGEST_LEASE_MS = 10 * 60_000;

/**
 * Reads the configuration of a spawn-budget process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readSpawnBudgetConfig(env: NodeJS.ProcessEnv = process.env): SpawnBudgetConfig {
  const { host, port, dataDir, keyRotationMs, clockLeewayMs, leaseMs, grantTtlMs } = readEnv(env, {
    ...listenerVariables('spawn-budget'),
    leaseMs: variable.duration('WRIT_SLOT_LEASE', {
      default: SPAWN_BUDGET_DEFAULTS.leaseMs,
      max: LONGEST_LEASE_MS,
      about: 'how long a slot is kept without a renewal by its worker',
    }),
    grantTtlMs: variable.duration('WRIT_SLOT_GRANT_TTL', {
      default: SPAWN_BUDGET_DEFAULTS.grantTtlMs,
      min: 100,
      max: SLOT_GRANT_TTL_MS,
      about:
        'how long a slot grant is valid, and so how long an agent may still act after it was paused',
    }),
  });
  if (leaseMs < grantTtlMs + GRANT_MARGIN_MS)
    throw new ConfigError('The environment', [
      `WRIT_SLOT_LEASE must be at least ${GRANT_MARGIN_MS} ms longer than WRIT_SLOT_GRANT_TTL, because a grant ends before its lease.`,
    ]);
  return {
    ...SPAWN_BUDGET_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    clockLeewayMs,
    store: readStoreLocation(env, 'spawn-budget', dataDir),
    leaseMs,
    grantTtlMs,
  };
}
