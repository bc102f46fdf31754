import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { connect, TLSSocket } from 'node:tls';
import { createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { credentials } from '@grpc/grpc-js';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { describe, expect, it } from 'vitest';
import { type Certificates, certificates } from './certificates.ts';
import { ALLOWED, KEY, rejection, START, type Started, start } from './fixture.ts';

async function edge(): Promise<Started & { readonly certs: Certificates }> {
  const certs = await certificates();
  const started = await start(
    'edge',
    {
      startRun: async () => ({ run: { runId: 'run-1' } }),
      async *watchRun({ afterSequence }) {
        yield { event: { sequence: afterSequence + 1n } };
        yield { event: { sequence: afterSequence + 2n } };
      },
    },
    { tls: certs.edge() },
  );
  return { ...started, certs };
}

const TRANSPORTS: Readonly<Record<string, (baseUrl: string, ca: string) => Transport>> = {
  'Connect over HTTP/1.1': (baseUrl, ca) =>
    createConnectTransport({ baseUrl, httpVersion: '1.1', nodeOptions: { ca } }),
  'Connect over HTTP/2': (baseUrl, ca) =>
    createConnectTransport({ baseUrl, httpVersion: '2', nodeOptions: { ca } }),
  'gRPC-Web over HTTP/1.1': (baseUrl, ca) =>
    createGrpcWebTransport({ baseUrl, httpVersion: '1.1', nodeOptions: { ca } }),
  'gRPC-Web over HTTP/2': (baseUrl, ca) =>
    createGrpcWebTransport({ baseUrl, httpVersion: '2', nodeOptions: { ca } }),
  gRPC: (baseUrl, ca) => createGrpcTransport({ baseUrl, nodeOptions: { ca } }),
};

describe('an edge with TLS', () => {
  it.each(Object.entries(TRANSPORTS))(
    'serves %s on its single port, unary and streaming (SYS-2)',
    async (_, transportOf) => {
      const { address, certs } = await edge();
      const runs = createClient(RunService, transportOf(`https://${address}`, certs.ca));
      const headers = { authorization: `Bearer ${KEY}` };
      expect((await runs.startRun(START, { headers })).run?.runId).toBe('run-1');
      const sequences = [];
      for await (const { event } of runs.watchRun({ runId: 'run-1' }, { headers })) {
        sequences.push(event?.sequence);
      }
      expect(sequences).toEqual([1n, 2n]);
    },
  );

  it('serves gRPC clients that select HTTP/2 by ALPN (SYS-2)', async () => {
    const { client, certs } = await edge();
    const creds = credentials.createSsl(Buffer.from(certs.ca));
    const runs = client({ tls: { credentials: () => creds, serverName: 'supervisor' } });
    expect((await runs.startRun(START, ALLOWED)).run?.runId).toBe('run-1');
  });

  it('serves JSON over HTTP/1.1 to clients without ALPN (SYS-2)', async () => {
    const { address, certs } = await edge();
    const url = `https://${address}/writ.run.v1.RunService/StartRun`;
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const call = httpsRequest(url, { method: 'POST', headers, ca: certs.ca }, (response) => {
      response.setEncoding('utf8').on('data', resolve);
    });
    call.on('error', reject).end(JSON.stringify(START));
    expect(JSON.parse(await promise)).toMatchObject({ run: { runId: 'run-1' } });
  });

  it('rejects cleartext (SYS-4)', async () => {
    const { address } = await edge();
    await expect(fetch(`http://${address}/`)).rejects.toThrow();
  });

  it('rejects protocols older than TLS 1.2 (SYS-4)', async () => {
    const { address, certs } = await edge();
    const [host = '', port = ''] = address.split(':');
    const old = connect({
      host,
      port: Number(port),
      ca: certs.ca,
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      // Otherwise the client itself would refuse the protocol.
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    const failed = new Promise((_, reject) => old.on('error', reject));
    const error = await rejection(failed);
    expect(error).toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
  });

  it('presents a new certificate without a restart and closes old connections (SYS-6)', async () => {
    const { address, certs } = await edge();
    const old = connectHttp2(`https://${address}`, { ca: certs.ca });
    const before = await serialNumberOf(old);
    const left = new Promise((resolve) => old.once('close', resolve));
    await certs.renew();
    await left;
    const next = connectHttp2(`https://${address}`, { ca: certs.ca });
    expect(await serialNumberOf(next)).not.toBe(before);
    next.close();
  });
});

/** Returns the serial number of the server certificate of a session. */
async function serialNumberOf(session: ClientHttp2Session): Promise<string> {
  await new Promise((resolve) => session.once('connect', resolve));
  const { socket } = session;
  if (!(socket instanceof TLSSocket)) throw new TypeError('The connection does not use TLS.');
  return socket.getPeerCertificate().serialNumber;
}
