import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { partialRoute, type ServerTls, TlsFiles } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { generateTestCertificates } from '@writ/testing/certificates';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const ANY_PORT = ['supervisor', 'worker', 'tools'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);

let permissive: KeyPeer;

function startPermissive(tls?: ServerTls): Promise<KeyPeer> {
  return startKeyPeer('tool-gateway', {
    ...(tls && { tls }),
    routes: [
      partialRoute(ToolGatewayService, {
        // Accepts every caller.
        listTools: async () => ({ tools: [{ name: 'pay' }], registryVersion: '1' }),
        voidWrit: async () => ({}),
        resolveOutcome: async () => ({}),
        freeze: async () => ({}),
        unfreeze: async () => ({}),
      }),
    ],
  });
}

beforeAll(async () => {
  permissive = await startPermissive();
});
afterAll(() => permissive.close());

async function verify(address: string, ...options: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['gateway', 'verify', address, ...ANY_PORT, ...options], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

describe('writ gateway verify', () => {
  it('reports every case and fails a gateway that accepts every caller (TG-7, SYS-6)', async () => {
    const { exit, out } = await verify(permissive.address, '--only', 'service');
    expect(exit).toBe(1);
    const line = (text: string) => out.find((one) => one.includes(text));
    expect(line('tools.yaml declares it')).toMatch(/^FAIL {2}registry: .*\(TG-6\): it is absent/);
    expect(line('denies a worker Unfreeze')).toMatch(/^FAIL .*\(SYS-6\): step 1: error is absent/);
    expect(line('publishes its keys')).toMatch(/^pass {2}service: .*\(TG-8\)$/);
    expect(out.at(-1)).toMatch(/^\n\d+ passed, \d+ failed, 0 skipped$/);
  });

  it('prints the settings of the gateway before it connects (TG-7)', async () => {
    const { exit, out, err } = await verify('127.0.0.1:1', '--wait', '0');
    expect(exit).toBe(2);
    expect(out.join('\n')).toMatch(/supervisor +127\.0\.0\.1:\d+ +WRIT_SUPERVISOR_ADDRESS/);
    expect(err[0]).toMatch(
      /^The gateway at 127\.0\.0\.1:1 was not ready within 0 s\. .*ECONNREFUSED/,
    );
  });

  it('rejects a --wait that is not a number of seconds (SYS-3)', async () => {
    const { exit, err } = await verify('127.0.0.1:1', '--wait', 'long');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(/--wait.*Expected a number of seconds\.$/);
  });

  it('lists the available tables if --only matches no table (SYS-3)', async () => {
    const { exit, err } = await verify(permissive.address, '--only', 'weather');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(
      /^No table matches weather\. Available tables: .*crashes.*writ-checks\.$/,
    );
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
    certified = await startPermissive({ files, clientCertificates: 'required' });
  });
  afterAll(async () => {
    await certified?.close();
    files?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('presents service certificates and fails a gateway that ignores their names (TG-7, SYS-6)', async () => {
    const only = ['--only', 'tls', ...tlsOptions(join(dir, 'own'))];
    const { exit, out } = await verify(certified.address, ...only);
    expect(exit).toBe(1);
    expect(out.join('\n')).toMatch(
      /certificate +spiffe:\/\/test\.local\/writ\/tool-gateway +WRIT_TLS_CERT_FILE/,
    );
    const line = (text: string) => out.find((one) => one.includes(text));
    expect(line('rejects clients without a certificate')).toMatch(/^pass {2}tls: /);
    expect(line('rejects a token of one service')).toMatch(/^FAIL .*step 1: error is absent/);
  });

  it('skips certificate cases in cleartext and prints the reason (TG-7)', async () => {
    const { out } = await verify(permissive.address, '--only', 'tls');
    expect(out.filter((line) => line.startsWith('skip'))).toHaveLength(2);
    expect(out.join('\n')).toContain('requires --tls-cert-file');
  });

  it('reports the TLS error of a gateway with another CA or in cleartext (SYS-3, SYS-4)', async () => {
    const foreign = tlsOptions(join(dir, 'foreign'));
    const untrustedCallers = await verify(certified.address, '--wait', '0', ...foreign);
    expect(untrustedCallers.exit).toBe(2);
    expect(untrustedCallers.err[0]).toMatch(/not ready within 0 s\. Last error: .*certificate/);
    const cleartext = await verify(certified.address, '--wait', '0');
    expect(cleartext.exit).toBe(2);
    expect(cleartext.err[0]).toMatch(/not ready within 0 s\. Last error: /);
  });

  it('requires a certificate for each simulated service and all three options (SYS-3)', async () => {
    const [ca = '', caFile = '', cert = ''] = tlsOptions(join(dir, 'own'));
    const one = await verify('127.0.0.1:1', ca, caFile, cert, caFile, '--tls-key-file', caFile);
    expect(one.exit).toBe(2);
    expect(one.err[0]).toBe(
      '--tls-cert-file must contain {service}, which is replaced by supervisor, agent-worker, tool-provider.',
    );
    const half = await verify('127.0.0.1:1', ca, caFile);
    expect(half.exit).toBe(2);
    expect(half.err[0]).toMatch(/must be set together\.$/);
  });
});
