import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { issueCertificate } from '@writ/certs';
import { isWritError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, vi } from 'vitest';
import { createEdge } from '../src/edge/index.ts';
import { createRpcServer, type GateCall, TlsFiles } from '../src/index.ts';
import { type Certificates, certificates } from './certificates.ts';
import { clientOf, rejection, START, start } from './fixture.ts';

/** Starts a server with the certificate of the supervisor; `seen` contains the client URIs that its gate received. */
async function guarded(certs: Certificates) {
  const seen: GateCall['peerUris'][] = [];
  const started = await start(
    'grpc-js',
    { startRun: async () => ({ run: { runId: 'run-1' } }) },
    {
      tls: certs.server('supervisor'),
      gate: async ({ peerUris }) => {
        seen.push(peerUris);
        return {};
      },
    },
  );
  return { ...started, seen };
}

const reason = (error: unknown): string | undefined =>
  isWritError(error) ? `${error.kind} ${error.message}` : undefined;

/**
 * Connects with the worker certificate in `dir`, or without a client certificate if `withCertificate` is false, and
 * returns the serial number of the server certificate. Rejects unless the server starts HTTP/2.
 */
function serialOf(address: string, { dir }: Certificates, withCertificate = true): Promise<string> {
  const [host = '', port = ''] = address.split(':');
  const own = {
    cert: readFileSync(join(dir, 'agent-worker.crt')),
    key: readFileSync(join(dir, 'agent-worker.key')),
  };
  const ca = readFileSync(join(dir, 'ca.crt'));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const to = { host, port: Number(port), ALPNProtocols: ['h2'], ca, ...(withCertificate && own) };
  const socket = connect(to);
  socket.once('data', () => {
    resolve(socket.getPeerCertificate().serialNumber);
    socket.destroy();
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('closed')));
  return promise;
}

describe('an internal port with TLS', () => {
  it('passes the URI names of the client certificate to its gate (SYS-6)', async () => {
    const certs = await certificates();
    const { client, seen } = await guarded(certs);
    const { run } = await client({ tls: certs.client('agent-worker') }).startRun(START);
    expect(run?.runId).toBe('run-1');
    expect(seen).toEqual([['spiffe://test.local/writ/agent-worker']]);
  });

  it('rejects clients without a certificate or with a certificate of another authority (SYS-4, SYS-6)', async () => {
    const certs = await certificates();
    const untrusted = await certificates();
    // These clients trust the server, so only the server can reject the connection.
    copyFileSync(join(certs.dir, 'ca.crt'), join(untrusted.dir, 'ca.crt'));
    const { client, seen, address } = await guarded(certs);
    const untrustedClient = client({ tls: untrusted.client('agent-worker'), timeoutMs: 3_000 });
    expect(reason(await rejection(untrustedClient.startRun(START)))).toMatch(/^unavailable /);
    const plain = client({ timeoutMs: 3_000 });
    expect(reason(await rejection(plain.startRun(START)))).toMatch(/^unavailable /);
    await expect(serialOf(address, certs, false)).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    });
    await expect(serialOf(address, certs)).resolves.toMatch(/^01/);
    expect(seen).toEqual([]);
  });

  it('logs a failed handshake, but a port probe only at debug level', async () => {
    const certs = await certificates();
    const lines: string[] = [];
    const logStream = { write: (line: string) => void lines.push(line) };
    const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'debug', logStream });
    const tls = certs.server('supervisor');
    const gate = async () => ({});
    const server = await createRpcServer({
      host: '127.0.0.1',
      port: 0,
      routes: [],
      gate,
      telemetry,
      tls,
    });
    const send = (bytes: string): Promise<unknown> => {
      const socket = connectTcp(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.end(bytes);
      return once(socket, 'close');
    };
    const logged = () => lines.map((line) => JSON.parse(line) as { level: string; msg: string });
    await send('');
    await expect
      .poll(logged)
      .toMatchObject([
        { level: 'debug', msg: expect.stringContaining('before its TLS handshake') },
      ]);
    await send('GET / HTTP/1.1\r\n\r\n');
    await expect
      .poll(() => logged()[1])
      .toMatchObject({
        level: 'info',
        msg: expect.stringContaining('handshake failed'),
      });
    await server.close(0);
  });

  it('is rejected by a client that expects another service (SYS-6)', async () => {
    const certs = await certificates();
    const { client, seen } = await guarded(certs);
    const misled = client({ tls: certs.client('agent-worker', 'agent-worker'), timeoutMs: 3_000 });
    expect(reason(await rejection(misled.startRun(START)))).toContain(
      'names spiffe://test.local/writ/supervisor instead of spiffe://test.local/writ/agent-worker',
    );
    expect(seen).toEqual([]);
  });

  it('uses new certificates for new connections without a restart and finishes calls on old ones (SYS-6)', async () => {
    const certs = await certificates();
    const proceed = Promise.withResolvers<void>();
    const { address, telemetry } = await start(
      'grpc-js',
      {
        startRun: async ({ goal }) => {
          if (goal === 'wait') await proceed.promise;
          return { run: { runId: goal } };
        },
      },
      { tls: certs.server('supervisor'), gate: async () => ({}) },
    );
    const client = clientOf(address, telemetry, { tls: certs.client('agent-worker') });
    await client.startRun(START);
    const inFlight = client.startRun({ ...START, goal: 'wait' });
    const before = await serialOf(address, certs);
    await certs.renew();
    await expect.poll(() => serialOf(address, certs)).not.toBe(before);
    for (let call = 0; call < 5; call += 1) {
      const { run } = await client.startRun({ ...START, goal: 'now' });
      expect(run?.runId).toBe('now');
    }
    proceed.resolve();
    expect((await inFlight).run?.runId).toBe('wait');
  });

  it('replaces its authority step by step without rejecting calls (SYS-6)', async () => {
    const certs = await certificates();
    const next = await certificates();
    const { client } = await guarded(certs);
    const runs = client({ tls: certs.client('agent-worker') });
    const reloads = () => certs.lines.filter((line) => line.includes('TLS files reloaded')).length;
    const step = async (count: number, change: () => void): Promise<void> => {
      change();
      await expect.poll(reloads).toBeGreaterThanOrEqual(count);
      expect((await runs.startRun(START)).run?.runId).toBe('run-1');
    };
    const caFile = join(certs.dir, 'ca.crt');
    // Both sides reload at every step.
    await step(2, () => appendFileSync(caFile, next.ca));
    await step(4, () => {
      for (const name of ['supervisor', 'agent-worker'])
        for (const end of ['crt', 'key'])
          copyFileSync(join(next.dir, `${name}.${end}`), join(certs.dir, `${name}.${end}`));
    });
    await step(6, () => writeFileSync(caFile, next.ca));
  });

  it('closes a connection when the client certificate expires (SYS-4)', async () => {
    const certs = await certificates();
    const { address } = await guarded(certs);
    const authority = { cert: certs.ca, key: readFileSync(join(certs.dir, 'ca.key'), 'utf8') };
    const brief = await issueCertificate(authority, { commonName: 'brief', lifeMs: 5_000 });
    const [host = '', port = ''] = address.split(':');
    const to = { host, port: Number(port), ALPNProtocols: ['h2'], ca: certs.ca };
    const socket = connect({ ...to, ...brief });
    // Rejects when the certificate expires before the handshake.
    await once(socket, 'data');
    await once(socket, 'close');
    // A timer may fire a millisecond early.
    expect(Date.now()).toBeGreaterThan(new X509Certificate(brief.cert).validToDate.getTime() - 100);
  });

  it('rejects clients of a removed authority (SYS-4)', async () => {
    const certs = await certificates();
    const successor = await certificates();
    const { address } = await guarded(certs);
    const before = await serialOf(address, certs);
    for (const file of ['ca.crt', 'supervisor.crt', 'supervisor.key'])
      copyFileSync(join(successor.dir, file), join(certs.dir, file));
    await expect.poll(() => serialOf(address, successor).catch(() => before)).not.toBe(before);
    await expect(serialOf(address, certs)).rejects.toThrow();
  });

  it('refuses cleartext on a public address unless it is explicitly allowed (SYS-4)', async () => {
    const { telemetry } = await start('grpc-js', {});
    const open = { host: '0.0.0.0', port: 0, routes: [], gate: async () => ({}), telemetry };
    const refused = await rejection(createRpcServer(open));
    expect(refused).toMatchObject({ kind: 'failed_precondition', reason: 'CLEARTEXT_NOT_ALLOWED' });
    expect(reason(refused)).toContain('WRIT_ALLOW_CLEARTEXT=true');
    const allowed = await createRpcServer({ ...open, cleartext: 'anywhere' });
    await allowed.close(0);
  });
});

describe.each([
  ['an internal port', createRpcServer],
  ['an edge', createEdge],
] as const)('%s whose port is in use', (_, create) => {
  it('fails and does not watch TLS files (SYS-4)', async () => {
    const certs = await certificates();
    const { telemetry, server } = await start('grpc-js', {});
    const tls = certs.server('supervisor');
    let watching = 0;
    const onChange = tls.files.onChange.bind(tls.files);
    vi.spyOn(tls.files, 'onChange').mockImplementation((listener) => {
      const unsubscribe = onChange(listener);
      watching += 1;
      return () => {
        unsubscribe();
        watching -= 1;
      };
    });
    const { port } = server;
    const options = { host: '127.0.0.1', port, routes: [], gate: async () => ({}), telemetry, tls };
    expect(await rejection(create(options))).toMatchObject({ reason: 'PORT_IN_USE' });
    expect(watching).toBe(0);
  });
});

describe('TLS files', () => {
  it('keep the previous material when they are invalid, and log it once (SYS-4)', async () => {
    const certs = await certificates();
    const files = certs.files('supervisor');
    const { current } = files;
    const certFile = join(certs.dir, 'supervisor.crt');
    writeFileSync(certFile, 'no certificate');
    const errors = () => certs.lines.filter((line) => line.includes('keeping the previous ones'));
    await expect.poll(errors).toHaveLength(1);
    expect(errors()[0]).toContain(`${certFile} contains no certificate in PEM format.`);
    await certs.renew();
    await expect.poll(() => files.current).not.toBe(current);
    expect(errors()).toHaveLength(1);
  });

  it.each([
    ['supervisor.crt', '', 'contains no certificate in PEM format.'],
    ['supervisor.key', 'x', 'contains no private key in PEM format.'],
    ['ca.crt', 'x', 'contains no certificate in PEM format.'],
  ])('are rejected at startup when %s is invalid (SYS-4)', async (file, text, sentence) => {
    const certs = await certificates();
    writeFileSync(join(certs.dir, file), text);
    expect(() => certs.files('supervisor')).toThrow(`${join(certs.dir, file)} ${sentence}`);
  });

  it('are rejected when the key does not match the certificate (SYS-4)', async () => {
    const certs = await certificates();
    const keyFile = join(certs.dir, 'supervisor.key');
    copyFileSync(join(certs.dir, 'agent-worker.key'), keyFile);
    expect(() => certs.files('supervisor')).toThrow(`${keyFile} does not match the certificate of`);
  });

  it('are rejected when a file is missing (SYS-4)', async () => {
    const { lines: _, ...certs } = await certificates();
    const open = () =>
      TlsFiles.open({
        certFile: join(certs.dir, 'none.crt'),
        keyFile: join(certs.dir, 'supervisor.key'),
        log: vi.fn() as never,
      });
    expect(open).toThrow('none.crt cannot be read (ENOENT).');
  });
});
