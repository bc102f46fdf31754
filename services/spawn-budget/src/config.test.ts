import { describe, expect, it } from 'vitest';
import { readSpawnBudgetConfig } from './config.ts';

describe('readSpawnBudgetConfig', () => {
  it('has defaults that work in one process', () => {
    expect(readSpawnBudgetConfig({})).toMatchObject({
      host: '127.0.0.1',
      port: 50_052,
      store: { dialect: 'sqlite', file: '.writ/spawn-budget.db' },
      leaseMs: 15_000,
      grantTtlMs: 5_000,
    });
  });

  it('reads the environment and names an invalid variable', () => {
    const env = { WRIT_SPAWN_BUDGET_PORT: '1', WRIT_SLOT_LEASE: '1m', WRIT_DATA: '/data' };
    expect(readSpawnBudgetConfig(env)).toMatchObject({ port: 1, leaseMs: 60_000 });
    expect(() => readSpawnBudgetConfig({ WRIT_SLOT_LEASE: 'long' })).toThrow(/WRIT_SLOT_LEASE/);
  });

  it('rejects a grant TTL above five seconds, the maximum delay of a pause (SB-4)', () => {
    expect(readSpawnBudgetConfig({ WRIT_SLOT_GRANT_TTL: '5s' })).toMatchObject({
      grantTtlMs: 5_000,
    });
    expect(() => readSpawnBudgetConfig({ WRIT_SLOT_GRANT_TTL: '5001ms' })).toThrow(
      /WRIT_SLOT_GRANT_TTL .*from 100 to 5000 ms.*WRIT_SLOT_GRANT_TTL=5000ms/,
    );
  });

  it('rejects a lease that keeps the slots of dead agents too long (SB-8)', () => {
    expect(() => readSpawnBudgetConfig({ WRIT_SLOT_LEASE: '11m' })).toThrow(
      /WRIT_SLOT_LEASE .*at most 600000 ms/,
    );
  });

  it('rejects a lease that ends before its grants (SB-4)', () => {
    expect(() => readSpawnBudgetConfig({ WRIT_SLOT_LEASE: '5s' })).toThrow(
      /WRIT_SLOT_LEASE must be at least 1000 ms longer than WRIT_SLOT_GRANT_TTL/,
    );
  });
});
