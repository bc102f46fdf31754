import { join } from 'node:path';
import { ConfigError, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { UnavailableError } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { LOG_LEVELS, type LogLevel } from '@writ/telemetry';

/** Everything that can be set about spawn-budget. Times are milliseconds. */
export interface SpawnBudgetConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** The signing key lives below it. */
  readonly dataDir: string;
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
  grantTtlMs: 5_000,
  sweepMs: 1_000,
  keepClosedMs: 7 * 24 * 60 * 60_000,
  drainMs: 5_000,
} as const;

/** A grant ends this much before its lease, so that a slot is not given on while a slower clock still honours the grant. */
export const GRANT_MARGIN_MS = 1_000;

/**
 * Reads the settings of a spawn-budget process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readSpawnBudgetConfig(env: NodeJS.ProcessEnv = process.env): SpawnBudgetConfig {
  const { host, port, dataDir, leaseMs, grantTtlMs } = readEnv(env, {
    host: variable.string('WRIT_SPAWN_BUDGET_HOST', {
      default: SPAWN_BUDGET_DEFAULTS.host,
      about: 'the address on which services call',
    }),
    port: variable.port('WRIT_SPAWN_BUDGET_PORT', {
      default: 50_052,
      about: 'the port on which services call',
    }),
    dataDir: variable.string('WRIT_DATA', {
      default: '.writ',
      about: 'the folder for keys and state',
    }),
    leaseMs: variable.duration('WRIT_SLOT_LEASE', {
      default: SPAWN_BUDGET_DEFAULTS.leaseMs,
      about: 'how long a slot is kept when its worker does not renew it',
    }),
    grantTtlMs: variable.duration('WRIT_SLOT_GRANT_TTL', {
      default: SPAWN_BUDGET_DEFAULTS.grantTtlMs,
      min: 100,
      about: 'how long a slot grant works',
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
    store: { dialect: 'sqlite', file: join(dataDir, 'spawn-budget.db') },
    leaseMs,
    grantTtlMs,
  };
}

/** What spawn-budget needs beside its config when it has a process of its own. */
export interface ProcessConfig {
  /** Where the services are whose word it takes. */
  readonly addressOf: (service: ServiceName) => string;
  readonly telemetry: { readonly logLevel: LogLevel; readonly otlpEndpoint?: string };
}

/**
 * Reads what a process of its own needs.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readProcessConfig(env: NodeJS.ProcessEnv = process.env): ProcessConfig {
  const { supervisor, agentWorker, logLevel, otlpEndpoint } = readEnv(env, {
    supervisor: variable.string('WRIT_SUPERVISOR_ADDRESS', {
      default: '127.0.0.1:50051',
      about: 'where the supervisor is asked for its keys',
    }),
    agentWorker: variable.string('WRIT_AGENT_WORKER_ADDRESS', {
      default: '127.0.0.1:50055',
      about: 'where the agent worker is asked for its keys',
    }),
    logLevel: variable.enum('WRIT_LOG_LEVEL', LOG_LEVELS, {
      default: 'info',
      about: 'how much is logged',
    }),
    otlpEndpoint: variable.url('OTEL_EXPORTER_OTLP_ENDPOINT', {
      optional: true,
      about: 'the collector that traces go to',
    }),
  });
  const addresses = new Map<ServiceName, string>([
    ['supervisor', supervisor],
    ['agent-worker', agentWorker],
  ]);
  return {
    addressOf: (service) => {
      const address = addresses.get(service);
      if (address !== undefined) return address;
      throw new UnavailableError('NO_ADDRESS', `spawn-budget has no address of ${service}.`, {
        service,
      });
    },
    telemetry: { logLevel, ...(otlpEndpoint === undefined ? {} : { otlpEndpoint }) },
  };
}
