import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFolder, issueInFolder } from '@writ/certs';
import { createTelemetry } from '@writ/telemetry';
import { onTestFinished } from 'vitest';
import { type ChannelTls, channelTls, type ServerTls, TlsFiles } from '../src/index.ts';

const HOUR_MS = 3_600_000;
const SERVICES = ['supervisor', 'agent-worker'] as const;
type Name = (typeof SERVICES)[number];

/** A folder of certificates with TLS settings for servers and clients. */
export interface Certificates {
  readonly dir: string;
  /** Every log line of the TLS files. */
  readonly lines: string[];
  readonly files: (name: Name) => TlsFiles;
  readonly server: (name: Name) => ServerTls;
  /** TLS of an edge, without client certificates. */
  readonly edge: () => ServerTls;
  /** The authority, in PEM. */
  readonly ca: string;
  /** TLS of a client with the certificate of `name` that expects `peer`. */
  readonly client: (name: Name, peer?: Name) => ChannelTls;
  /** Replaces all certificates with new ones. */
  readonly renew: () => Promise<unknown>;
}

/** Creates a folder of certificates; removed when the test has finished. */
export async function certificates(trustDomain = 'test.local'): Promise<Certificates> {
  const dir = mkdtempSync(join(tmpdir(), 'writ-tls-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const options = {
    dir,
    trustDomain,
    services: SERVICES,
    addresses: ['127.0.0.1'],
    lifeMs: HOUR_MS,
  };
  await createFolder(options, HOUR_MS);
  const lines: string[] = [];
  const { log } = createTelemetry({
    service: 'supervisor',
    logStream: { write: (line: string) => void lines.push(line) },
  });
  const files = (name: Name): TlsFiles => {
    const opened = TlsFiles.open({
      certFile: join(dir, `${name}.crt`),
      keyFile: join(dir, `${name}.key`),
      caFile: join(dir, 'ca.crt'),
      log,
      pollMs: 20,
    });
    onTestFinished(() => opened.close());
    return opened;
  };
  return {
    dir,
    lines,
    files,
    server: (name) => ({ files: files(name), clientCertificates: 'required' }),
    edge: () => ({ files: files('supervisor'), clientCertificates: 'none' }),
    ca: readFileSync(join(dir, 'ca.crt'), 'utf8'),
    client: (name, peer = 'supervisor') =>
      channelTls(files(name), {
        uri: `spiffe://${trustDomain}/writ/${peer}`,
        serverName: `${peer}.writ`,
      }),
    renew: () => issueInFolder(options),
  };
}
