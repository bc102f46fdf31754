import { describe, expect, it } from 'vitest';
import { readDatabaseLimits } from './database-limits.ts';

const DEFAULTS = {
  statementTimeoutMs: 5_000,
  lockTimeoutMs: 8_000,
  idleTimeoutMs: 6_000,
  connectTimeoutMs: 5_000,
  poolSize: 4,
};

describe('readDatabaseLimits', () => {
  it('applies defaults, limits for all services, and limits for one service', () => {
    expect(readDatabaseLimits({}, 'supervisor')).toEqual(DEFAULTS);
    const env = {
      WRIT_DATABASE_POOL_SIZE: '8',
      WRIT_DATABASE_CONNECT_TIMEOUT: '2s',
      WRIT_SUPERVISOR_DATABASE_POOL_SIZE: '2',
      // Docker Compose passes unset variables as empty strings.
      WRIT_SUPERVISOR_DATABASE_CONNECT_TIMEOUT: '',
    };
    const forAll = { ...DEFAULTS, connectTimeoutMs: 2_000, poolSize: 8 };
    expect(readDatabaseLimits(env, 'tool-gateway')).toEqual(forAll);
    expect(readDatabaseLimits(env, 'supervisor')).toEqual({ ...forAll, poolSize: 2 });
  });

  it.each([
    ['STATEMENT_TIMEOUT', '5', 'must be a duration with a unit'],
    ['STATEMENT_TIMEOUT', '0s', 'from 100 to 60000 ms'],
    ['LOCK_TIMEOUT', '10m', 'from 300 to 300000 ms'],
    ['IDLE_TIMEOUT', '1ms', 'from 200 to 240000 ms'],
    ['CONNECT_TIMEOUT', '2m', 'from 100 to 60000 ms'],
    ['POOL_SIZE', '0', 'a whole number from 1 to 32'],
    ['POOL_SIZE', '33', 'a whole number from 1 to 32'],
  ])('rejects %s=%s with an error that names the setting (SYS-3)', (what, value, why) => {
    for (const name of [`WRIT_SPAWN_BUDGET_DATABASE_${what}`, `WRIT_DATABASE_${what}`]) {
      const read = () => readDatabaseLimits({ [name]: value }, 'spawn-budget');
      expect(read).toThrow(new RegExp(`^${name} must be`));
      expect(read).toThrow(why);
    }
  });

  it('rejects a limit that would make another ineffective (SYS-3)', () => {
    const read = (env: Record<string, string>) => () => readDatabaseLimits(env, 'agent-worker');
    expect(read({ WRIT_DATABASE_STATEMENT_TIMEOUT: '6s' })).toThrow(
      'WRIT_DATABASE_IDLE_TIMEOUT (6000 ms) must be longer than WRIT_DATABASE_STATEMENT_TIMEOUT (6000 ms)',
    );
    expect(read({ WRIT_AGENT_WORKER_DATABASE_LOCK_TIMEOUT: '6s' })).toThrow(
      'WRIT_AGENT_WORKER_DATABASE_LOCK_TIMEOUT (6000 ms) must be longer than WRIT_DATABASE_IDLE_TIMEOUT (6000 ms)',
    );
    const longer = { statement: '20s', idle: '25s', lock: '30s' };
    const env = Object.fromEntries(
      Object.entries(longer).map(([what, value]) => [
        `WRIT_DATABASE_${what.toUpperCase()}_TIMEOUT`,
        value,
      ]),
    );
    expect(read(env)()).toMatchObject({ statementTimeoutMs: 20_000, lockTimeoutMs: 30_000 });
  });
});
