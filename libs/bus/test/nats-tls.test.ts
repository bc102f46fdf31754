import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@writ/kernel';
import { generateTestCertificates, type TestCertificates } from '@writ/testing/certificates';
import { isNatsAvailable, type NatsServer, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNatsBus, HOOK_STREAMS, hookSubject } from '../src/index.ts';

describe.skipIf(!isNatsAvailable())('the way to NATS over TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-nats-tls-'));
  let certs: TestCertificates;
  let strangers: TestCertificates;
  let server: NatsServer;
  let open: NatsServer;

  beforeAll(async () => {
    certs = await generateTestCertificates(join(dir, 'own'));
    strangers = await generateTestCertificates(join(dir, 'strangers'));
    const files = { cert_file: certs.certFile('nats'), key_file: certs.keyFile('nats') };
    const lines = Object.entries({ ...files, ca_file: certs.caFile });
    const tls = lines.map(([name, file]) => `${name}: ${JSON.stringify(file)}`).join('\n');
    server = await startNatsServer({ config: `tls { ${tls}\nverify: true }\n` });
    open = await startNatsServer();
  });
  afterAll(async () => {
    await server?.stop();
    await open?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  type Tls = NonNullable<Parameters<typeof createNatsBus>[0]['tls']>;
  const own = (): Tls => ({
    caFile: certs.caFile,
    certFile: certs.certFile('supervisor'),
    keyFile: certs.keyFile('supervisor'),
  });

  /** What comes of one message by way of a server: that it is kept, or else why it is not. */
  async function tell(address: string, tls?: Tls): Promise<string> {
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

  it('is open to whoever shows a certificate of the authority that the server asks for (SYS-6)', async () => {
    expect(await tell(`tls://${server.address}`, own())).toBe('kept');
  });

  it('is closed to whoever shows none, or a stranger (SYS-4, SYS-6)', async () => {
    const { caFile } = certs;
    const certFile = strangers.certFile('supervisor');
    const keyFile = strangers.keyFile('supervisor');
    expect(await tell(`tls://${server.address}`, { caFile })).toMatch(/does not answer/);
    expect(await tell(`tls://${server.address}`, { caFile, certFile, keyFile })).not.toBe('yes');
    expect(await tell(server.address)).toMatch(/does not answer/);
  });

  it('is not gone with a server that another authority vouches for (SYS-4)', async () => {
    const { caFile } = strangers;
    expect(await tell(`tls://${server.address}`, { ...own(), caFile })).toMatch(
      /BUS_UNREACHABLE|does not answer/,
    );
  });

  it('is not gone in cleartext when TLS was asked for, by a file or by the scheme (SYS-4)', async () => {
    expect(await tell(`nats://${open.address}`)).toBe('kept');
    expect(await tell(`nats://${open.address}`, own())).toMatch(/does not answer/);
    expect(await tell(`tls://${open.address}`)).toMatch(/does not answer/);
  });
});
