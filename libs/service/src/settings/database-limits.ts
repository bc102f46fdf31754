import { ConfigError, type Environment, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { variableName } from './names.ts';

/** The limits of a service's sessions on PostgreSQL: `PostgresLimits` without `writers`. Times in milliseconds. */
export interface DatabaseLimits {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
}

const MINUTE_MS = 60_000;

/**
 * Reads the limits of `service` on PostgreSQL: `WRIT_<SERVICE>_DATABASE_STATEMENT_TIMEOUT` and so on, or for all
 * services `WRIT_DATABASE_STATEMENT_TIMEOUT` and so on.
 * @throws ConfigError naming each variable that is malformed, out of range or in conflict with another
 */
export function readDatabaseLimits(env: Environment, service: ServiceName): DatabaseLimits {
  const nameOf = (what: string): string => {
    const own = variableName(service, `DATABASE_${what}`);
    return (env[own] ?? '').trim() === '' ? `WRIT_DATABASE_${what}` : own;
  };
  const names = {
    statement: nameOf('STATEMENT_TIMEOUT'),
    lock: nameOf('LOCK_TIMEOUT'),
    idle: nameOf('IDLE_TIMEOUT'),
  };
  const limits = readEnv(env, {
    statementTimeoutMs: variable.duration(names.statement, {
      default: 5_000,
      min: 100,
      max: MINUTE_MS,
      about: 'the time limit of a transaction and of a statement',
    }),
    lockTimeoutMs: variable.duration(names.lock, {
      default: 8_000,
      min: 300,
      max: 5 * MINUTE_MS,
      about: 'how long a transaction waits for a lock that another replica holds',
    }),
    idleTimeoutMs: variable.duration(names.idle, {
      default: 6_000,
      min: 200,
      max: 4 * MINUTE_MS,
      about: 'the idle time after which the server rolls back a transaction',
    }),
    connectTimeoutMs: variable.duration(nameOf('CONNECT_TIMEOUT'), {
      default: 5_000,
      min: 100,
      max: MINUTE_MS,
      about: 'the time limit for opening a session',
    }),
    poolSize: variable.integer(nameOf('POOL_SIZE'), {
      default: 4,
      min: 1,
      max: 32,
      about: 'the number of sessions for reads in each replica',
    }),
  });
  refuseConflicts(limits, names);
  return limits;
}

function refuseConflicts(
  { statementTimeoutMs, lockTimeoutMs, idleTimeoutMs }: DatabaseLimits,
  { statement, lock, idle }: Readonly<Record<'statement' | 'lock' | 'idle', string>>,
): void {
  const problems: string[] = [];
  if (idleTimeoutMs <= statementTimeoutMs) {
    problems.push(
      `${idle} (${idleTimeoutMs} ms) must be longer than ${statement} (${statementTimeoutMs} ms), or the server would roll back transactions within their time limit.`,
    );
  }
  if (lockTimeoutMs <= idleTimeoutMs) {
    problems.push(
      `${lock} (${lockTimeoutMs} ms) must be longer than ${idle} (${idleTimeoutMs} ms), or replicas would time out before the server rolls back the transaction of a paused replica.`,
    );
  }
  if (problems.length > 0) throw new ConfigError('The environment', problems);
}
