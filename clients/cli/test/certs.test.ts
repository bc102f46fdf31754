import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICE_NAMES } from '@writ/identity';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const DAY_MS = 86_400_000;

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'writ-certs-')), 'new');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

/** Runs `writ certs` on the folder; returns its exit code and output. */
async function certs(...args: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['certs', folder, ...args], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const certificate = (name: string) => new X509Certificate(read(`${name}.crt`));

describe('writ certs', () => {
  it('creates a CA and a certificate for each service (SYS-6)', async () => {
    const { exit, out } = await certs('--trust-domain', 'example.org', '--dns', 'writ.example.org');
    expect(exit).toBe(0);
    expect(out).toHaveLength(SERVICE_NAMES.length + 1);
    const authority = certificate('ca');
    expect(authority.ca).toBe(true);
    for (const service of [...SERVICE_NAMES, 'tool-provider']) {
      const own = certificate(service);
      expect(own.verify(authority.publicKey)).toBe(true);
      expect(own.checkIssued(authority)).toBe(true);
      expect(own.ca).toBe(false);
      const [uri, ...others] = (own.subjectAltName ?? '').split(', ');
      expect(uri).toBe(`URI:spiffe://example.org/writ/${service}`);
      expect(others).toContain('DNS:writ.example.org');
      expect(own.validToDate.getTime()).toBeLessThan(Date.now() + 8 * DAY_MS);
      expect(own.publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' });
    }
  });

  it('creates files that only their owner can read (SYS-6)', async () => {
    await certs();
    for (const file of readdirSync(folder))
      expect([file, statSync(join(folder, file)).mode & 0o777]).toEqual([file, 0o600]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('rejects a second CA in a folder, even when one file of the first CA is missing (SYS-4)', async () => {
    await certs();
    const before = read('ca.key');
    const again = await certs();
    expect(again.exit).toBe(2);
    expect(again.err.join()).toContain('ca.key exists');
    rmSync(join(folder, 'ca.key'));
    expect((await certs()).err.join()).toContain('ca.crt exists');
    writeFileSync(join(folder, 'ca.key'), before, { mode: 0o600 });
    expect((await certs('--renew')).exit).toBe(0);
  });

  it('creates no CA when the certificates of the folder belong to another trust domain (SYS-4)', async () => {
    await certs('--trust-domain', 'example.org');
    for (const file of ['ca.key', 'ca.crt']) rmSync(join(folder, file));
    const other = await certs('--trust-domain', 'example.com');
    expect(other.err.join()).toContain('belong to trust domain example.org');
    expect((await certs('--trust-domain', 'example.org')).exit).toBe(0);
  });

  it('renews certificates with the existing CA and adds others (SYS-6)', async () => {
    await certs();
    const before = { authority: read('ca.crt'), own: certificate('supervisor').serialNumber };
    expect((await certs('--renew', '--days', '0.5', '--also', 'edge', 'nats')).exit).toBe(0);
    expect(read('ca.crt')).toBe(before.authority);
    expect(certificate('supervisor').serialNumber).not.toBe(before.own);
    expect(certificate('supervisor').validToDate.getTime()).toBeLessThan(Date.now() + DAY_MS);
    // Services do not accept this certificate as a service certificate, because it has no URI.
    expect(certificate('edge').subjectAltName).not.toContain('URI:');
    expect(certificate('nats').subjectAltName).toContain('DNS:nats');
  });

  it('issues no certificate that outlives its CA (SYS-4)', async () => {
    await certs('--days', '30', '--ca-days', '1');
    expect(certificate('supervisor').validToDate).toEqual(certificate('ca').validToDate);
  });

  it.each([
    [['--renew'], 'ca.crt does not exist'],
    [['--trust-domain', 'Invalid/name'], '--trust-domain must be'],
    [['--ip', 'localhost'], '--ip localhost is not an IP address.'],
    [['--days', 'many'], '--days must be a number of days'],
    [['--also', 'ca'], '--also ca must be'],
    [['--also', 'supervisor'], '--also supervisor must be'],
    [['--also', '../x'], '--also ../x must be'],
  ])('rejects the arguments %j and names the problem (SYS-3)', async (args, sentence) => {
    const { exit, err } = await certs(...args);
    expect(exit).toBe(2);
    expect(err.join()).toContain(sentence);
  });
});
