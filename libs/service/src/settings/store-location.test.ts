import { describe, expect, it } from 'vitest';
import { readStoreLocation } from './store-location.ts';

describe('readStoreLocation', () => {
  it('defaults to a SQLite file in the data directory', () => {
    expect(readStoreLocation({}, 'spawn-budget', '/data')).toEqual({
      dialect: 'sqlite',
      file: '/data/spawn-budget.db',
      marker: { file: '/data/keys/spawn-budget.store.json', everyMs: 5_000 },
    });
  });

  it('reads a PostgreSQL database with a schema for the service', () => {
    const url = 'postgres://writ:secret@db:5432/writ?sslmode=disable';
    const env = { WRIT_SPAWN_BUDGET_DATABASE_URL: url };
    expect(readStoreLocation(env, 'spawn-budget', '/data')).toMatchObject({
      dialect: 'postgres',
      url,
      schema: 'spawn_budget',
      limits: { statementTimeoutMs: 5_000, poolSize: 4 },
    });
    expect(readStoreLocation(env, 'supervisor', '/data')).toMatchObject({ dialect: 'sqlite' });
  });

  it('accepts only sslmode=verify-full and sslmode=disable (SYS-4)', () => {
    const read = (parameters: string) =>
      readStoreLocation(
        { WRIT_SUPERVISOR_DATABASE_URL: `postgres://writ:secret@db/writ?${parameters}` },
        'supervisor',
        '/data',
      );
    expect(read('sslmode=verify-full&sslrootcert=/ca.crt')).toMatchObject({ dialect: 'postgres' });
    expect(read('sslmode=disable')).toMatchObject({ dialect: 'postgres' });
    const otherModes = ['require', 'prefer', 'allow', 'no-verify', 'verify-ca', ''];
    for (const parameters of [
      ...otherModes.map((mode) => `sslmode=${mode}`),
      'ssl=no-verify',
      'sslmode=verify-full&uselibpqcompat=true',
    ]) {
      expect(() => read(parameters), parameters).toThrow(
        /^WRIT_SUPERVISOR_DATABASE_URL must have sslmode=verify-full/,
      );
    }
  });

  it('requires sslmode for a database on another machine (SYS-4)', () => {
    const read = (place: string) =>
      readStoreLocation(
        { WRIT_SUPERVISOR_DATABASE_URL: `postgres://writ:secret@${place}` },
        'supervisor',
        '/data',
      );
    for (const place of ['db/writ', '10.0.0.7:5432/writ', '127.0.0.1/writ?host=db']) {
      expect(() => read(place), place).toThrow(/must have sslmode=verify-full/);
    }
    for (const place of ['127.0.0.1:5432/writ', 'localhost/writ', '[::1]:5432/writ']) {
      expect(read(place)).toMatchObject({ dialect: 'postgres' });
    }
  });

  it('rejects a marker interval that exceeds the longest delay of a timer (BD-4)', () => {
    const read = (every: string) =>
      readStoreLocation({ WRIT_STORE_MARKER_EVERY: every }, 'supervisor', '/data');
    expect(read('24d').marker.everyMs).toBe(24 * 24 * 3_600_000);
    expect(() => read('25d')).toThrow(/WRIT_STORE_MARKER_EVERY/);
  });

  it('rejects an invalid PostgreSQL URL without printing it (SYS-3)', () => {
    const env = { WRIT_SUPERVISOR_DATABASE_URL: 'mysql://writ:secret@db/writ' };
    const read = () => readStoreLocation(env, 'supervisor', '/data');
    expect(read).toThrow(/WRIT_SUPERVISOR_DATABASE_URL/);
    expect(read).not.toThrow(/secret/);
  });
});
