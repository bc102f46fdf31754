import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@writ/kernel';
import { generateTestCertificates, type TestCertificates } from '@writ/testing/certificates';
import { isNatsAvailable, type NatsServer, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOOK_STREAMS, hookSubject } from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';

describe.skipIf(!isNatsAvailable())('NATS over TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-nats-tls-'));
  let certs: TestCertificates;
  let otherAuthority: TestCertificates;
  let server: NatsServer;
  let cleartextServer: NatsServer;

  beforeAll(async () => {
    certs = await generateTestCertificates(join(dir, 'own'));
    otherAuthority = await generateTestCertificates(join(dir, 'otherAuthority'));
    const files = { cert_file: certs.certFile('nats'), key_file: certs.keyFile('nats') };
    const lines = Object.entries({ ...files, ca_file: certs.caFile });
    const tls = lines.map(([name, file]) => `${name}: ${JSON.stringify(file)}`).join('\n');
    server = await startNatsServer({ config: `tls { ${tls}\nverify: true }\n` });
    cleartextServer = await startNatsServer();
  });
  afterAll(async () => {
    await server?.stop();
    await cleartextServer?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  type Tls = NonNullable<Parameters<typeof createNatsBus>[0]['tls']>;
  const own = (): Tls => ({
    caFile: certs.caFile,
    certFile: certs.certFile('supervisor'),
    keyFile: certs.keyFile('supervisor'),
  });

  /** Publishes one message; returns `kept` or the error message. */
  async function publish(address: string, tls?: Tls): Promise<string> {
    const failures: unknown[] = [];
    const bus = await createNatsBus({
      servers: [address],
      name: 'supervisor',
      streams: HOOK_STREAMS,
      streamBytes: 2 ** 20,
      startTimeoutMs: 1_000,
      requestTimeoutMs: 2_000,
      onError: (error) => void failures.push(error),
      ...(tls && { tls }),
    });
    const subject = hookSubject({ tenant: 't1', runId: 'r1', agent: 'a1', event: 'RUN_START' });
    const payload = new Uint8Array([1]);
    try {
      await bus.publish({ eventId: newId('evt'), subject, payload, headers: {} });
      return 'kept';
    } catch {
      return String(failures[0]);
    } finally {
      await bus.close();
    }
  }

  it('accepts clients with a certificate of the required authority (SYS-6)', async () => {
    expect(await publish(`tls://${server.address}`, own())).toBe('kept');
  });

  it('rejects clients without a certificate or with a certificate of another authority (SYS-4, SYS-6)', async () => {
    const { caFile } = certs;
    const certFile = otherAuthority.certFile('supervisor');
    const keyFile = otherAuthority.keyFile('supervisor');
    const [without, untrusted, cleartext] = await Promise.all([
      publish(`tls://${server.address}`, { caFile }),
      publish(`tls://${server.address}`, { caFile, certFile, keyFile }),
      publish(server.address),
    ]);
    expect(without).toMatch(/is unreachable/);
    expect(untrusted).not.toBe('kept');
    expect(cleartext).toMatch(/is unreachable/);
  });

  it('rejects a server with a certificate of another authority (SYS-4)', async () => {
    const { caFile } = otherAuthority;
    expect(await publish(`tls://${server.address}`, { ...own(), caFile })).toMatch(
      /BUS_UNREACHABLE|is unreachable/,
    );
  });

  it('does not fall back to cleartext if a file or the scheme requires TLS (SYS-4)', async () => {
    expect(await publish(`nats://${cleartextServer.address}`)).toBe('kept');
    const refused = await Promise.all([
      publish(`nats://${cleartextServer.address}`, own()),
      publish(`tls://${cleartextServer.address}`),
    ]);
    for (const answer of refused) expect(answer).toMatch(/is unreachable/);
  });

  it.each([
    ['caFile', 'WRIT_NATS_CA_FILE'],
    ['certFile', 'WRIT_NATS_CERT_FILE'],
    ['keyFile', 'WRIT_NATS_KEY_FILE'],
  ])(
    'fails at the start if %s cannot be read, and names the setting (SYS-3)',
    async (name, setting) => {
      const missing = join(dir, 'missing.pem');
      await expect(
        createNatsBus({
          servers: [`tls://${server.address}`],
          name: 'supervisor',
          tls: { ...own(), [name]: missing },
          onError: () => undefined,
        }),
      ).rejects.toMatchObject({
        reason: 'INVALID_TLS_FILE',
        message: `${missing} cannot be read (ENOENT); correct the file or ${setting}.`,
      });
    },
  );
});
