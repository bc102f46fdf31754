import { freePorts } from '@writ/testing/distributed';
import { isPostgresAvailable, startDedicatedPostgres } from '@writ/testing/postgres';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { openLedgerAt } from './open-ledger.ts';

const GRANTED_TO_ALL = `
  alter function pg_catalog.pg_try_advisory_lock(bigint) rename to pg_try_real_lock;
  create function pg_catalog.pg_try_advisory_lock(bigint) returns boolean language sql as 'select true'`;

it.runIf(isPostgresAvailable())(
  'rejects a server whose advisory locks have no effect (EM-3, SYS-5)',
  async () => {
    const [port = 0] = await freePorts(1);
    const server = await startDedicatedPostgres(port, undefined, { allow_system_table_mods: 'on' });
    onTestFinished(() => server.stop());
    const location = { dialect: 'postgres', url: server.url(), schema: 'ledger' } as const;
    await openLedgerAt(location);
    const client = new pg.Client({ connectionString: server.url() });
    await client.connect();
    await client.query(GRANTED_TO_ALL).finally(() => client.end());
    await expect(openLedgerAt(location)).rejects.toMatchObject({
      reason: 'STORE_WITHOUT_LOCKS',
      message: expect.stringContaining('PostgreSQL schema ledger'),
    });
  },
);
