import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateTestCertificates, type TestCertificates } from '@writ/testing/certificates';
import { freePorts } from '@writ/testing/distributed';
import {
  type DedicatedPostgres,
  isPostgresAvailable,
  startDedicatedPostgres,
} from '@writ/testing/postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLedgerAt } from './open-ledger.ts';

describe.skipIf(!isPostgresAvailable())('a PostgreSQL connection over TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-postgres-tls-'));
  let certs: TestCertificates;
  let otherAuthority: TestCertificates;
  let secured: DedicatedPostgres;
  let open: DedicatedPostgres;
  let mutualTls: DedicatedPostgres;

  beforeAll(async () => {
    certs = await generateTestCertificates(join(dir, 'own'));
    otherAuthority = await generateTestCertificates(join(dir, 'otherAuthority'));
    const files = { certFile: certs.certFile('postgres'), keyFile: certs.keyFile('postgres') };
    const [first = 0, second = 0, third = 0] = await freePorts(3);
    secured = await startDedicatedPostgres(first, files);
    open = await startDedicatedPostgres(second);
    const hba = 'hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n';
    mutualTls = await startDedicatedPostgres(third, { ...files, caFile: certs.caFile, hba });
  }, 120_000);
  afterAll(async () => {
    await secured?.stop();
    await open?.stop();
    await mutualTls?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  async function opens(server: DedicatedPostgres, parameters = ''): Promise<string> {
    try {
      const url = `${server.url()}${parameters}`;
      await openLedgerAt({ dialect: 'postgres', url, schema: 'ledger' });
      return 'yes';
    } catch (error) {
      return error instanceof Error ? error.message : 'no';
    }
  }

  const verifying = ({ caFile }: TestCertificates) =>
    `?sslmode=verify-full&sslrootcert=${encodeURIComponent(caFile)}`;

  it('accepts a server of the given certificate authority (SYS-4)', async () => {
    expect(await opens(secured, verifying(certs))).toBe('yes');
  });

  it('rejects a server of another authority or without TLS (SYS-4)', async () => {
    expect(await opens(secured, verifying(otherAuthority))).toContain(
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    );
    expect(await opens(open)).toBe('yes');
    expect(await opens(open, verifying(certs))).toContain('does not support SSL');
  });

  it('requires a client certificate issued by the certificate authority of the server (SYS-4, SYS-6)', async () => {
    const showing = (shown: TestCertificates) =>
      `${verifying(certs)}&sslcert=${shown.certFile('supervisor')}&sslkey=${shown.keyFile('supervisor')}`;
    expect(await opens(mutualTls, showing(certs))).toBe('yes');
    expect(await opens(mutualTls, verifying(certs))).not.toBe('yes');
    expect(await opens(mutualTls, showing(otherAuthority))).not.toBe('yes');
  });

  it('rejects cleartext if the server requires TLS (SYS-4)', async () => {
    expect(await opens(secured)).not.toBe('yes');
  });
});
