import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { route, type ServerTls, TlsFiles, unimplemented } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { generateTestCertificates } from '@writ/testing/certificates';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const ANYWHERE = ['supervisor', 'worker', 'tools'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);

let credulous: KeyPeer;

function startCredulous(tls?: ServerTls): Promise<KeyPeer> {
  const notHere = unimplemented('Not by this gateway.');
  return startKeyPeer('tool-gateway', {
    ...(tls && { tls }),
    routes: [
      route(ToolGatewayService, {
        // To anybody, whoever asks.
        listTools: async () => ({ tools: [{ name: 'pay' }], registryVersion: '1' }),
        callTool: notHere,
        getReceipt: notHere,
        voidWrit: async () => ({}),
        resolveOutcome: async () => ({}),
        freeze: async () => ({}),
        unfreeze: async () => ({}),
      }),
    ],
  });
}

beforeAll(async () => {
  credulous = await startCredulous();
});
afterAll(() => credulous.close());

async function verify(address: string, ...options: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['gateway', 'verify', address, ...ANYWHERE, ...options], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

describe('writ gateway verify', () => {
  it('says of each case whether it holds, and fails a gateway that trusts anybody (TG-7, SYS-6)', async () => {
    const { exit, out } = await verify(credulous.address, '--only', 'service');
    expect(exit).toBe(1);
    const line = (text: string) => out.find((one) => one.includes(text));
    expect(line('tools.yaml declares it')).toMatch(/^FAIL {2}registry: .*\(TG-6\): it is absent/);
    expect(line('lets no worker unfreeze')).toMatch(/^FAIL .*\(SYS-6\): step 1: error is absent/);
    expect(line('publishes its keys')).toMatch(/^pass {2}service: .*\(TG-8\)$/);
    expect(out.at(-1)).toMatch(/^\n\d+ passed, \d+ failed, 0 skipped$/);
  });

  it('tells what the gateway must be started with, before it looks for it (TG-7)', async () => {
    const { exit, out, err } = await verify('127.0.0.1:1', '--wait', '0');
    expect(exit).toBe(2);
    expect(out.join('\n')).toMatch(/supervisor +127\.0\.0\.1:\d+ +WRIT_SUPERVISOR_ADDRESS/);
    expect(err[0]).toMatch(/^Nothing at 127\.0\.0\.1:1 served within 0 s\. .*ECONNREFUSED/);
  });

  it('waits for a number of seconds, and for nothing else (SYS-3)', async () => {
    const { exit, err } = await verify('127.0.0.1:1', '--wait', 'long');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(/--wait.*It must be a number of seconds\.$/);
  });

  it('names the tables that there are when none is named so (SYS-3)', async () => {
    const { exit, err } = await verify(credulous.address, '--only', 'weather');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(/^No table is named weather; there are .*crashes.*writ-checks\.$/);
  });
});

describe('writ gateway verify over mutual TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-verify-'));
  const tlsOptions = (folder: string) => [
    ...['--tls-ca-file', join(folder, 'ca.crt')],
    ...['--tls-cert-file', join(folder, '{service}.crt')],
    ...['--tls-key-file', join(folder, '{service}.key')],
  ];
  let files: TlsFiles;
  let certified: KeyPeer;

  beforeAll(async () => {
    const { certFile, keyFile, caFile } = await generateTestCertificates(join(dir, 'own'));
    await generateTestCertificates(join(dir, 'foreign'));
    files = TlsFiles.open({
      certFile: certFile('tool-gateway'),
      keyFile: keyFile('tool-gateway'),
      caFile,
      log: createTelemetry({ service: 'tool-gateway', logLevel: 'silent' }).log,
    });
    certified = await startCredulous({ files, clientCertificates: 'required' });
  });
  afterAll(async () => {
    await certified?.close();
    files?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('shows the certificate of whom it plays, and finds a gateway that looks at none of their names (TG-7, SYS-6)', async () => {
    const only = ['--only', 'tls', ...tlsOptions(join(dir, 'own'))];
    const { exit, out } = await verify(certified.address, ...only);
    expect(exit).toBe(1);
    expect(out.join('\n')).toMatch(
      /certificate +spiffe:\/\/test\.local\/writ\/tool-gateway +WRIT_TLS_CERT_FILE/,
    );
    const line = (text: string) => out.find((one) => one.includes(text));
    expect(line('lets in nobody without a certificate')).toMatch(/^pass {2}tls: /);
    expect(line('takes no token of one service')).toMatch(/^FAIL .*step 1: error is absent/);
  });

  it('skips what is about certificates in cleartext, and says why (TG-7)', async () => {
    const { out } = await verify(credulous.address, '--only', 'tls');
    expect(out.filter((line) => line.startsWith('skip'))).toHaveLength(2);
    expect(out.join('\n')).toContain('it needs certificates: see --tls-cert-file');
  });

  it('says why a gateway of another authority, or one that is called in cleartext, does not serve (SYS-3, SYS-4)', async () => {
    const foreign = tlsOptions(join(dir, 'foreign'));
    const strangers = await verify(certified.address, '--wait', '0', ...foreign);
    expect(strangers.exit).toBe(2);
    expect(strangers.err[0]).toMatch(/served within 0 s\. The last answer: .*certificate/);
    const cleartext = await verify(certified.address, '--wait', '0');
    expect(cleartext.exit).toBe(2);
    expect(cleartext.err[0]).toMatch(/served within 0 s\. The last answer: /);
  });

  it('wants a certificate for each service that it plays, and all three options (SYS-3)', async () => {
    const [ca = '', caFile = '', cert = ''] = tlsOptions(join(dir, 'own'));
    const one = await verify('127.0.0.1:1', ca, caFile, cert, caFile, '--tls-key-file', caFile);
    expect(one.exit).toBe(2);
    expect(one.err[0]).toBe(
      '--tls-cert-file must contain {service}, which stands for supervisor, agent-worker, tool-provider in turn: each has its own.',
    );
    const half = await verify('127.0.0.1:1', ca, caFile);
    expect(half.exit).toBe(2);
    expect(half.err[0]).toMatch(/give all three, or none\.$/);
  });
});
