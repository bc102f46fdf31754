import { freePorts } from '@writ/testing/distributed';
import { isPostgresAvailable, startDedicatedPostgres } from '@writ/testing/postgres';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { serverUse } from './write-times.ts';

const COMMITS = 20;

it.runIf(isPostgresAvailable())(
  'reads the number of the flushes of the log, and their time (SYS-5)',
  async () => {
    const [port = 0] = await freePorts(1);
    const settings = { fsync: 'on', track_wal_io_timing: 'on' };
    const server = await startDedicatedPostgres(port, undefined, settings);
    onTestFinished(() => server.stop());
    const before = await serverUse(server.url());
    const client = new pg.Client({ connectionString: server.url() });
    await client.connect();
    await client.query('CREATE TABLE numbers (number int)');
    for (let each = 0; each < COMMITS; each += 1)
      await client.query('INSERT INTO numbers VALUES (1)');
    // Its session reports its statistics at the latest when it ends.
    await client.end();
    await expect
      .poll(async () => (await serverUse(server.url())).flushes - before.flushes)
      .toBeGreaterThanOrEqual(COMMITS);
    // In a file system in memory, a flush can be shorter than a microsecond.
    expect((await serverUse(server.url())).flushMs).toBeGreaterThanOrEqual(before.flushMs);
  },
);
