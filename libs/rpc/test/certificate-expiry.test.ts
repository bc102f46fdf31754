import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '@writ/certs';
import { createTelemetry, type Metrics } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { TlsFiles } from '../src/index.ts';
import { certificates } from './certificates.ts';

const DAY_MS = 86_400_000;
/** How far the authority backdates the start of a certificate, ms. */
const BACKDATED_MS = 5 * 60_000;

/** Creates the TLS files of a service and records log lines and metrics. The test can replace the certificate. */
async function observed() {
  const { dir, ca } = await certificates();
  const authority = { cert: ca, key: readFileSync(join(dir, 'ca.key'), 'utf8') };
  const names = {
    certFile: join(dir, 'supervisor.crt'),
    keyFile: join(dir, 'supervisor.key'),
    caFile: join(dir, 'ca.crt'),
  };
  const lines: string[] = [];
  const { log, metrics: none } = createTelemetry({
    service: 'supervisor',
    logLevel: 'warn',
    logStream: { write: (line: string) => void lines.push(line) },
  });
  const gauges: Parameters<Metrics['observe']>[1][] = [];
  const metrics: Metrics = { ...none, observe: (_, read) => void gauges.push(read) };
  return {
    authority,
    names,
    /** Replaces the certificate with one that expires in `leftMs` after a lifetime of `lifeMs`. */
    async issue(leftMs: number, lifeMs: number): Promise<Date> {
      const began = new Date(Date.now() + leftMs - lifeMs + BACKDATED_MS);
      const { cert, key } = await issueCertificate(authority, {
        commonName: 'supervisor',
        lifeMs: lifeMs - BACKDATED_MS,
        now: began,
      });
      writeFileSync(names.keyFile, key);
      writeFileSync(names.certFile, cert);
      return new X509Certificate(cert).validToDate;
    },
    open(): TlsFiles {
      const files = TlsFiles.open({ ...names, log, metrics, pollMs: 20 });
      onTestFinished(() => files.close());
      return files;
    },
    /** The log lines about expiry, as level, certificate and message. */
    logged: () =>
      lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ msg }) => String(msg).includes('expire'))
        .map(({ level, certificate, msg }) => `${level} ${certificate}: ${msg}`),
    /** Seconds until expiry, by certificate. */
    async left() {
      const points = (await Promise.all(gauges.map((read) => read()))).flat();
      return new Map(
        points.map(({ value, labels = {} }) => [Object.values(labels).join(' '), value]),
      );
    },
  };
}

/** The name of the time series of an authority. */
const seriesOf = (pem: string) => {
  const { fingerprint256 } = new X509Certificate(pem);
  return `authority ${fingerprint256.replaceAll(':', '').slice(0, 16).toLowerCase()}`;
};
const secondsUntil = (date: Date) => (date.getTime() - Date.now()) / 1000;

it('measures the time until each certificate expires, and updates it after a reload (SYS-1, SYS-6)', async () => {
  const { authority, names, issue, open, left } = await observed();
  const first = await issue(30 * 60_000, 60 * 60_000);
  const files = open();
  const ofAuthority = new X509Certificate(authority.cert).validToDate;
  const before = await left();
  expect([...before.keys()]).toEqual(['service', seriesOf(authority.cert)]);
  expect(before.get('service')).toBeCloseTo(secondsUntil(first), -1);
  expect(before.get(seriesOf(authority.cert))).toBeCloseTo(secondsUntil(ofAuthority), -1);

  const successor = await createAuthority({ commonName: 'Its successor', lifeMs: 300 * DAY_MS });
  writeFileSync(names.caFile, authority.cert + successor.cert);
  const second = await issue(50 * 60_000, 60 * 60_000);
  await expect
    .poll(async () => (await left()).get('service'))
    .toBeGreaterThan(secondsUntil(first) + 60);
  const after = await left();
  expect(after.get('service')).toBeCloseTo(secondsUntil(second), -1);
  expect(after.get(seriesOf(successor.cert))).toBeGreaterThan(299 * 86_400);
  expect(after.size).toBe(3);

  files.close();
  expect((await left()).size).toBe(0);
});

it('measures the time until the earliest expiry in the certificate chain', async () => {
  const { authority, names, issue, open, left } = await observed();
  await issue(50 * 60_000, 60 * 60_000);
  const intermediate = await issueCertificate(authority, {
    commonName: 'between',
    lifeMs: 600_000,
  });
  writeFileSync(names.certFile, readFileSync(names.certFile, 'utf8') + intermediate.cert);
  open();
  expect((await left()).get('service')).toBeLessThan(601);
});

it('warns once at a fifth and at a twentieth of the lifetime, and logs one error at expiry (SYS-4)', async () => {
  const { issue, open, logged } = await observed();
  await issue(50 * 60_000, 60 * 60_000);
  const files = open();
  expect(logged()).toEqual([]);
  const replace = async (leftMs: number): Promise<void> => {
    const { current } = files;
    await issue(leftMs, 60 * 60_000);
    await expect.poll(() => files.current).not.toBe(current);
  };
  await replace(11 * 60_000);
  await expect.poll(logged).toEqual(['warn service: TLS certificate expires soon']);
  await replace(50 * 60_000);
  await replace(2_000);
  await expect
    .poll(logged, { timeout: 10_000 })
    .toEqual([
      'warn service: TLS certificate expires soon',
      'warn service: TLS certificate expires soon',
      'error service: TLS certificate expired',
    ]);
});

it('warns about an authority at most 30 days before it expires (SYS-4)', async () => {
  const { names, issue, open, logged } = await observed();
  await issue(50 * 60_000, 60 * 60_000);
  const expiringIn = (leftMs: number) =>
    createAuthority({
      commonName: 'An old authority',
      lifeMs: 365 * DAY_MS,
      now: new Date(Date.now() + leftMs - 365 * DAY_MS),
    });
  const own = readFileSync(names.caFile, 'utf8');
  writeFileSync(names.caFile, own + (await expiringIn(31 * DAY_MS)).cert);
  const files = open();
  expect(logged()).toEqual([]);
  const { current } = files;
  writeFileSync(names.caFile, own + (await expiringIn(29 * DAY_MS)).cert);
  await expect.poll(() => files.current).not.toBe(current);
  await expect.poll(logged).toEqual(['warn authority: TLS certificate expires soon']);
});

it('rejects a bundle of authorities with one invalid certificate (SYS-4)', async () => {
  const { names, open } = await observed();
  const broken = '-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n';
  writeFileSync(names.caFile, readFileSync(names.caFile, 'utf8') + broken);
  expect(open).toThrow(`${names.caFile} contains an invalid certificate.`);
});
