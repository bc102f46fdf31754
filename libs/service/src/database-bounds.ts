import { ConfigError, type Environment, readEnv, variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { variableName } from './names.ts';

/** What bounds the sessions of one service on PostgreSQL, with the shape of `PostgresBounds`. Milliseconds. */
export interface DatabaseBounds {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
}

const MINUTE_MS = 60_000;

/**
 * The limits of `service` on PostgreSQL: `WRIT_<SERVICE>_DATABASE_STATEMENT_TIMEOUT` and so on, else
 * those for all services, `WRIT_DATABASE_STATEMENT_TIMEOUT` and so on.
 * @throws ConfigError naming each variable that is malformed, out of range, or at odds with another
 */
export function readDatabaseBounds(env: Environment, service: ServiceName): DatabaseBounds {
  const nameOf = (what: string): string => {
    const own = variableName(service, `DATABASE_${what}`);
    return (env[own] ?? '').trim() === '' ? `WRIT_DATABASE_${what}` : own;
  };
  const names = {
    statement: nameOf('STATEMENT_TIMEOUT'),
    lock: nameOf('LOCK_TIMEOUT'),
    idle: nameOf('IDLE_TIMEOUT'),
  };
  const bounds = readEnv(env, {
    statementTimeoutMs: variable.duration(names.statement, {
      default: 5_000,
      min: 100,
      max: MINUTE_MS,
      about: 'how long a transaction may take, and any statement',
    }),
    lockTimeoutMs: variable.duration(names.lock, {
      default: 8_000,
      min: 300,
      max: 5 * MINUTE_MS,
      about: 'how long a transaction waits for those of other replicas',
    }),
    idleTimeoutMs: variable.duration(names.idle, {
      default: 6_000,
      min: 200,
      max: 4 * MINUTE_MS,
      about: 'after what silence the server undoes a transaction',
    }),
    connectTimeoutMs: variable.duration(nameOf('CONNECT_TIMEOUT'), {
      default: 5_000,
      min: 100,
      max: MINUTE_MS,
      about: 'how long opening a session may take',
    }),
    poolSize: variable.integer(nameOf('POOL_SIZE'), {
      default: 4,
      min: 1,
      max: 32,
      about: 'how many sessions a replica reads with',
    }),
  });
  refuseOdds(bounds, names);
  return bounds;
}

function refuseOdds(
  { statementTimeoutMs, lockTimeoutMs, idleTimeoutMs }: DatabaseBounds,
  { statement, lock, idle }: Readonly<Record<'statement' | 'lock' | 'idle', string>>,
): void {
  const problems: string[] = [];
  if (idleTimeoutMs <= statementTimeoutMs) {
    problems.push(
      `${idle} (${idleTimeoutMs} ms) must be longer than ${statement} (${statementTimeoutMs} ms), or the server would undo transactions that still have time.`,
    );
  }
  if (lockTimeoutMs <= idleTimeoutMs) {
    problems.push(
      `${lock} (${lockTimeoutMs} ms) must be longer than ${idle} (${idleTimeoutMs} ms), or replicas would give up before the server undoes the transaction of one that was stopped.`,
    );
  }
  if (problems.length > 0) throw new ConfigError('The environment', problems);
}
