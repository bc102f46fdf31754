import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tempFolder } from '../../test/temp-folder.ts';
import { MEMORY, SqliteConnection } from './sqlite-connection.ts';

function inMemory(): SqliteConnection {
  const connection = SqliteConnection.openWriter(MEMORY, MEMORY);
  connection.run(
    'create table t (big bigint, small integer, flag boolean, at timestamptz, raw bytea, text text, ratio real)',
  );
  return connection;
}

const AT = new Date('2026-03-04T05:06:07.089Z');

describe('a SQLite connection', () => {
  it('converts each value to the JavaScript type for the declared type of its column (EM-4)', () => {
    const connection = inMemory();
    const row = {
      big: 2n ** 63n - 1n,
      small: 2 ** 53 - 1,
      flag: true,
      at: AT,
      raw: new Uint8Array([0, 255]),
      text: 'ä',
      ratio: 0.5,
    };
    const insert = 'insert into t values (?, ?, ?, ?, ?, ?, ?) returning *';
    expect(connection.query(insert, Object.values(row)).rows).toEqual([row]);
    expect(connection.query('select * from (select * from t) as s', []).rows).toEqual([row]);
    connection.run('delete from t');
    const nothing = { ...row, flag: false, small: -1, big: 0n, at: null, raw: null, text: null };
    expect(connection.query(insert, Object.values(nothing)).rows).toEqual([nothing]);
  });

  it('binds whole numbers as integers, so that arithmetic is exact (EM-4)', () => {
    const connection = inMemory();
    connection.query('insert into t (big) values (?)', [2n ** 60n + 1n]);
    connection.query('update t set big = big + ?', [2]);
    expect(connection.query('select big, big + 1 as more, count(*) as n from t', []).rows).toEqual([
      { big: 2n ** 60n + 3n, more: 2n ** 60n + 4n, n: 1 },
    ]);
    expect(connection.query('select ? / 2 as half', [5]).rows).toEqual([{ half: 2 }]);
  });

  it('fails instead of rounding a sum above 64 bits (EM-4)', () => {
    const connection = inMemory();
    const insert = 'insert into t (big) values (?)';
    connection.query(insert, [2n ** 63n - 1n]);
    connection.query(insert, [1n]);
    expect(() => connection.query('select sum(big) from t', [])).toThrow(/overflow/);
  });

  it('rejects parameters that no column can store exactly, with their position', () => {
    const connection = inMemory();
    const bad = [2 ** 53, Number.NaN, Infinity, 2n ** 63n, undefined, {}, [], new Date('no')];
    for (const value of bad) {
      expect(() =>
        connection.query('insert into t (text, big) values (?, ?)', ['a', value]),
      ).toThrow(
        expect.objectContaining({
          reason: 'STORE_INVALID_PARAMETER',
          message: expect.stringContaining('Parameter 2'),
        }),
      );
    }
  });

  it('rejects a value above 2^53 - 1 in a column declared integer (EM-4)', () => {
    const connection = inMemory();
    connection.query('insert into t (small) values (?)', [2n ** 53n]);
    expect(() => connection.query('select small from t', [])).toThrow(
      expect.objectContaining({ reason: 'STORE_INEXACT_COLUMN' }),
    );
  });

  it('drops prepared statements when the schema changes', () => {
    const connection = inMemory();
    connection.query('insert into t (big) values (1)', []);
    expect(connection.query('select * from t', []).rows[0]).not.toHaveProperty('extra');
    connection.run('alter table t add column extra boolean default 1');
    expect(connection.query('select * from t', []).rows[0]).toMatchObject({ extra: true });
  });

  it('runs more statements than it caches', () => {
    const connection = inMemory();
    for (let n = 0; n < 1_200; n += 1) {
      expect(connection.query(`select ${n % 700} as n`, []).rows).toEqual([{ n: n % 700 }]);
    }
  });

  it('returns the number of changed rows and enforces foreign keys', () => {
    const connection = inMemory();
    connection.run('insert into t (small) values (1), (2), (3)');
    expect(connection.query('delete from t where small > ?', [1]).numAffectedRows).toBe(2n);
    connection.run('create table parent (id integer primary key)');
    connection.run('create table child (parent_id integer references parent (id))');
    expect(() => connection.run('insert into child values (1)')).toThrow(/FOREIGN KEY/);
  });

  it('uses WAL with synchronous NORMAL, in a directory that only the owner can access', () => {
    const folder = tempFolder();
    const file = folder.file('data/new/service.db');
    const connection = SqliteConnection.openWriter(file, file);
    expect(connection.query('PRAGMA journal_mode', []).rows).toEqual([{ journal_mode: 'wal' }]);
    expect(connection.query('PRAGMA synchronous', []).rows).toEqual([{ synchronous: 1 }]);
    expect(connection.query('PRAGMA wal_autocheckpoint', []).rows).toEqual([
      { wal_autocheckpoint: 4_000 },
    ]);
    expect(connection.query('PRAGMA foreign_keys', []).rows).toEqual([{ foreign_keys: 1 }]);
    expect(statSync(folder.file('data')).mode & 0o077).toBe(0);
    connection.close();
  });

  it('creates files that only the owner can access, even in a shared directory and with umask 0 (BD-1)', () => {
    const folder = tempFolder();
    mkdirSync(folder.file('shared'), { mode: 0o755 });
    const file = folder.file('shared/service.db');
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    const connection = SqliteConnection.openWriter(file, file);
    onTestFinished(() => connection.close());
    connection.run('create table t (id integer primary key)');
    const modes = [file, `${file}-wal`, `${file}-shm`].map((path) => statSync(path).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600, 0o600]);
  });

  it('reports a corrupt, unusable or locked file and a closed connection with separate reasons (SYS-3)', () => {
    const folder = tempFolder();
    const damaged = folder.file('damaged.db');
    writeFileSync(
      damaged,
      'this is no database, and long enough to be recognised as none'.repeat(20),
    );
    expect(() => SqliteConnection.openWriter(damaged, damaged)).toThrow(
      expect.objectContaining({
        reason: 'STORE_CORRUPT',
        message: expect.stringContaining(damaged),
      }),
    );
    const directory = folder.file('directory.db');
    mkdirSync(directory);
    expect(() => SqliteConnection.openWriter(directory, directory)).toThrow(
      expect.objectContaining({
        reason: 'STORE_DISK_FAILED',
        message: expect.stringContaining(directory),
      }),
    );
    const file = folder.file('shared.db');
    const first = SqliteConnection.openWriter(file, file);
    const second = SqliteConnection.openWriter(file, file, 1);
    first.run('BEGIN IMMEDIATE');
    expect(() => second.run('BEGIN IMMEDIATE')).toThrow(
      expect.objectContaining({ kind: 'unavailable', reason: 'STORE_BUSY' }),
    );
    first.close();
    second.close();
    expect(() => second.run('BEGIN')).toThrow(expect.objectContaining({ reason: 'STORE_CLOSED' }));
  });
});
