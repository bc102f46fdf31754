import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Transform } from 'node:stream';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { openLedgerAt } from './open-ledger.ts';

/** Opens a proxy that replaces the version of a PostgreSQL server with 13.14, and returns the URL of the proxy. */
async function oldServer(url: string): Promise<string> {
  const target = new URL(url);
  const { hostname, port } = target;
  const server = createServer((caller) => {
    const callee = connect(Number(port), hostname);
    callee.on('error', () => caller.destroy());
    caller.on('error', () => callee.destroy());
    const rewrite = new Transform({
      transform(chunk: Buffer, _, done) {
        const text = chunk.toString('latin1').replace(/\b1\d00\d\d (?=\d+\.\d+\/)/g, '130014 ');
        done(null, Buffer.from(text, 'latin1'));
      },
    });
    caller.pipe(callee).pipe(rewrite).pipe(caller);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  target.host = '127.0.0.1';
  target.port = String((server.address() as AddressInfo).port);
  return target.href;
}

it.runIf(isPostgresAvailable())('rejects a PostgreSQL server older than 14 (SYS-4)', async () => {
  const location = await postgresLocation();
  await expect(
    openLedgerAt({ ...location, url: await oldServer(location.url) }),
  ).rejects.toMatchObject({
    kind: 'failed_precondition',
    reason: 'STORE_POSTGRES_TOO_OLD',
    message: expect.stringContaining('PostgreSQL 130014; 140000 (14) or newer is required'),
    metadata: { server_version: '130014' },
  });
});
