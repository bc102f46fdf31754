import { ConfigError, readEnv, variable } from '@writ/config';
import { SLOT_GRANT_TTL_MS } from '@writ/identity';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Everything that can be set about spawn-budget. Times are milliseconds. */
export interface SpawnBudgetConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** The signing key lives below it. */
  readonly dataDir: string;
  /** How long a key signs before the next one does; undefined = for ever. */
  readonly keyRotationMs?: number | undefined;
  readonly store: StoreLocation;
  /** How long a slot is kept without a renewal by its worker (SB-8). */
  readonly leaseMs: number;
  /** How long a slot grant works: a pause holds against any worker after that (SB-4). */
  readonly grantTtlMs: number;
  /** Between two looks for leases that lapsed. */
  readonly sweepMs: number;
  /** How long the pool of a run that is over is kept. */
  readonly keepClosedMs: number;
  /** How long a stop waits for calls in flight. */
  readonly drainMs: number;
}

/** The defaults of everything that has one; tests start from here. */
export const SPAWN_BUDGET_DEFAULTS = {
  host: '127.0.0.1',
  leaseMs: 15_000,
  grantTtlMs: SLOT_GRANT_TTL_MS,
  sweepMs: 1_000,
  keepClosedMs: 7 * 24 * 60 * 60_000,
  drainMs: 5_000,
} as const;

/** A grant ends this much before its lease, so that a slot is not given on while a slower clock still honours the grant. */
export const GRANT_MARGIN_MS = 1_000;

/** Longest lease that may be set: as long as that, the slots of dead agents may be missing to the others (SB-8). */
const LONGEST_LEASE_MS = 10 * 60_000;

/**
 * Reads the settings of a spawn-budget process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readSpawnBudgetConfig(env: NodeJS.ProcessEnv = process.env): SpawnBudgetConfig {
  const { host, port, dataDir, keyRotationMs, leaseMs, grantTtlMs } = readEnv(env, {
    ...listenerVariables('spawn-budget'),
    leaseMs: variable.duration('WRIT_SLOT_LEASE', {
      default: SPAWN_BUDGET_DEFAULTS.leaseMs,
      max: LONGEST_LEASE_MS,
      about: 'how long a slot is kept when its worker does not renew it',
    }),
    grantTtlMs: variable.duration('WRIT_SLOT_GRANT_TTL', {
      default: SPAWN_BUDGET_DEFAULTS.grantTtlMs,
      min: 100,
      max: SLOT_GRANT_TTL_MS,
      about: 'how long a slot grant works, and so how long a paused worker may still act',
    }),
  });
  if (leaseMs < grantTtlMs + GRANT_MARGIN_MS)
    throw new ConfigError('The environment', [
      `WRIT_SLOT_LEASE must be at least ${GRANT_MARGIN_MS} ms longer than WRIT_SLOT_GRANT_TTL, since a grant ends before its lease.`,
    ]);
  return {
    ...SPAWN_BUDGET_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    store: readStoreLocation(env, 'spawn-budget', dataDir),
    leaseMs,
    grantTtlMs,
  };
}
