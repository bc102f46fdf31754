import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueInFolder, makeFolder } from '@writ/certs';
import { createTelemetry } from '@writ/telemetry';
import { onTestFinished } from 'vitest';
import { type ChannelTls, channelTls, type ServerTls, TlsFiles } from '../src/index.ts';

const HOUR_MS = 3_600_000;
const SERVICES = ['supervisor', 'agent-worker'] as const;
type Name = (typeof SERVICES)[number];

/** A folder of certificates, and what servers and clients make of it. */
export interface Certificates {
  readonly dir: string;
  /** Every line that was logged about files. */
  readonly lines: string[];
  readonly files: (name: Name) => TlsFiles;
  readonly server: (name: Name) => ServerTls;
  /** What an edge shows to clients, who show nothing. */
  readonly edge: () => ServerTls;
  /** The authority, in PEM. */
  readonly ca: string;
  /** A client that is `name`, and wants to talk to `peer`. */
  readonly client: (name: Name, peer?: Name) => ChannelTls;
  /** Issues new certificates in place of the old. */
  readonly renew: () => Promise<unknown>;
}

/** Makes a folder that is gone when the test is over. */
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
  await makeFolder(options, HOUR_MS);
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
