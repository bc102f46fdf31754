import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Migrations, openStore } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import pg from 'pg';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  POSTGRES_ROLES,
  type PostgresRole,
  ROLES_FILE,
  readRolesSql,
  rolesSql,
} from './postgres-roles.ts';

const PASSWORDS = Object.fromEntries(
  POSTGRES_ROLES.map(({ passwordVariable, role }) => [passwordVariable, `pass'word of ${role}`]),
);
const PAIRS = POSTGRES_ROLES.flatMap((one) =>
  POSTGRES_ROLES.filter((other) => other !== one).map((other) => [one, other] as const),
);

const migrations: Migrations = {
  '0001_secrets': {
    async up(db) {
      await db.schema.createTable('secrets').addColumn('text', 'text').execute();
    },
  },
};

it('deploy/postgres/roles.sql matches the table of services (SYS-6)', () => {
  expect(readRolesSql()).toBe(rolesSql());
});

describe.runIf(isPostgresAvailable())('the roles of services on a PostgreSQL server', () => {
  let server: string;

  /** The address of a database for a role. */
  const urlOf = ({ role }: PostgresRole, { database }: PostgresRole): string => {
    const url = new URL(server);
    url.username = role;
    url.pathname = database;
    return url.href;
  };

  const connect = async (url: string): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    onTestFinished(() => client.end());
    await client.connect();
    return client;
  };

  beforeAll(async () => {
    server = (await postgresLocation()).url;
    // Runs the script twice, because it must be idempotent.
    for (let time = 0; time < 2; time += 1) {
      await promisify(execFile)('psql', ['--quiet', '--no-psqlrc', '--file', ROLES_FILE, server], {
        env: { ...process.env, ...PASSWORDS },
      });
    }
    for (const each of POSTGRES_ROLES) {
      const { schema, service } = each;
      const location = { dialect: 'postgres', url: urlOf(each, each), schema } as const;
      const store = await openStore<{ secrets: { text: string } }>({
        ...{ location, migrations, service },
      });
      await store.transaction((trx) =>
        trx.insertInto('secrets').values({ text: service }).execute(),
      );
      await store.close();
    }
  });

  it.each(PAIRS.map(([one, other]) => [one.service, other.service, one, other] as const))(
    '%s cannot connect to the database of %s (SYS-6)',
    async (_one, _other, one, other) => {
      await expect(connect(urlOf(one, other))).rejects.toMatchObject({ code: '42501' });
    },
  );

  it.each(PAIRS.map(([one, other]) => [one.service, other.service, one, other] as const))(
    '%s cannot read, list or write any object of %s, even with permission to connect to its database (SYS-6)',
    async (_one, _other, one, other) => {
      const admin = new URL(server);
      admin.pathname = other.database;
      const administrator = await connect(admin.href);
      await administrator.query(`grant connect on database ${other.database} to ${one.role}`);
      onTestFinished(async () => {
        await administrator.query(`revoke connect on database ${other.database} from ${one.role}`);
      });
      const client = await connect(urlOf(one, other));
      const secrets = `${other.schema}.secrets`;
      for (const statement of [
        `select * from ${secrets}`,
        `insert into ${secrets} values ('forged')`,
        `update ${secrets} set text = 'forged'`,
        `delete from ${secrets}`,
        `truncate ${secrets}`,
        `drop table ${secrets}`,
        `create table ${other.schema}.mine (text text)`,
        `create table public.mine (text text)`,
        'create temporary table mine (text text)',
        `create schema mine`,
        `set role ${other.role}`,
      ]) {
        await expect(client.query(statement), statement).rejects.toMatchObject({ code: '42501' });
      }
      const listed = await client.query(
        `select 1 from information_schema.tables where table_schema = '${other.schema}'`,
      );
      expect(listed.rows).toEqual([]);
    },
  );

  it.each(POSTGRES_ROLES.map((each) => [each.service, each] as const))(
    '%s can use its own schema, but cannot create objects outside it (SYS-6)',
    async (service, each) => {
      const client = await connect(urlOf(each, each));
      const { rows } = await client.query(`select text from ${each.schema}.secrets`);
      expect(rows).toEqual([{ text: service }]);
      for (const statement of [
        'create schema mine',
        'create table public.mine (text text)',
        'create database mine',
        'create role mine',
        'select * from pg_authid',
      ]) {
        await expect(client.query(statement), statement).rejects.toMatchObject({ code: '42501' });
      }
    },
  );
});
