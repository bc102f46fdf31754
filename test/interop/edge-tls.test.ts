import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWritClient } from '@writ/client';
import { generateTestCertificates, type TestCertificates } from '@writ/testing/certificates';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../clients/cli/src/cli.ts';
import { callerPrograms, callProgram } from './caller-program.ts';

const dir = mkdtempSync(join(tmpdir(), 'writ-edge-tls-'));
let platform: TestPlatform;
let own: TestCertificates;
let other: TestCertificates;
let address = '';

beforeAll(async () => {
  own = await generateTestCertificates(join(dir, 'own'));
  other = await generateTestCertificates(join(dir, 'other'));
  writeFileSync(join(dir, 'not.pem'), 'not a certificate');
  const env = {
    WRIT_EDGE_TLS_CERT_FILE: own.certFile('edge'),
    WRIT_EDGE_TLS_KEY_FILE: own.keyFile('edge'),
  };
  platform = await startTestPlatform({ env });
  address = new URL(platform.platform.edgeUrl).host;
}, 60_000);
afterAll(async () => {
  await platform?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** The environment of a client that trusts the certificate authorities in `caFile`. */
const trusting = (caFile: string) => ({
  WRIT_API_KEY: platform.platform.apiKey,
  WRIT_ADDRESS: address,
  ...(caFile !== '' && { WRIT_CA_FILE: caFile }),
});

for (const program of callerPrograms())
  describe.skipIf(program.command.length === 0)(
    `the ${program.language} client, calling a TLS endpoint`,
    () => {
      const agents = (caFile: string) => callProgram(program, trusting(caFile), 'agents');

      it('accepts a certificate of its trusted authorities (SYS-2)', async () => {
        const { code, lines, stderr } = await agents(own.caFile);
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(lines.join('\n')).toContain('refund-worker: ');
      });

      it('rejects a certificate of another authority and names it as the cause (SYS-3, SYS-4)', async () => {
        const { code, lines, stderr } = await agents(other.caFile);
        expect({ code, lines }).toEqual({ code: 1, lines: [''] });
        expect(stderr).toMatch(/CERTIFICATE_VERIFY_FAILED|failed to verify certificate/);
        expect(stderr).not.toContain('Traceback');
      });

      it('fails in cleartext (SYS-4)', async () => {
        expect(await agents('')).toMatchObject({ code: 1, lines: [''] });
      });

      it.each(['missing.pem', 'not.pem'])(
        'names the setting of an invalid CA file: %s (SYS-3)',
        async (name) => {
          const { code, stderr } = await agents(join(dir, name));
          expect(code).not.toBe(0);
          expect(stderr).toMatch(/^WRIT_CA_FILE: [^\n]+$/);
        },
      );
    },
  );

describe('the TypeScript client, calling a TLS endpoint', () => {
  const client = (ca?: string) =>
    createWritClient({
      baseUrl: platform.platform.edgeUrl,
      apiKey: platform.platform.apiKey,
      ...(ca !== undefined && { ca }),
    });

  it('accepts a certificate of its trusted authorities (SYS-2)', async () => {
    const { agents } = await client(own.ca).runs.listAgents({});
    expect(agents.map(({ name }) => name)).toContain('refund-worker');
  });

  it.each([
    ['another authority', () => other.ca],
    ['the authorities of Node', () => undefined],
  ])(
    'rejects the certificate when trusting %s, and names it as the cause (SYS-3, SYS-4)',
    async (_, ca) => {
      await expect(client(ca()).runs.listAgents({})).rejects.toMatchObject({
        reason: 'CERTIFICATE_REJECTED',
        message: expect.stringMatching(/certificate/),
      });
    },
  );
});

describe('the writ command, calling a TLS endpoint', () => {
  async function halts(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
    const warnings: string[] = [];
    const exit = await runCli(['halts', 'list', ...args], {
      env,
      print: () => undefined,
      warn: (line) => warnings.push(line),
    });
    return { exit, warnings: warnings.join('\n') };
  }
  const at = (caFile: string) => ({
    ...trusting(caFile),
    WRIT_ADDRESS: platform.platform.edgeUrl,
  });

  it('accepts a certificate of its trusted authorities, by setting or option (SYS-2)', async () => {
    expect(await halts(at(own.caFile))).toEqual({ exit: 0, warnings: 'No halts.' });
    expect(await halts(at(other.caFile), '--ca-file', own.caFile)).toEqual({
      exit: 0,
      warnings: 'No halts.',
    });
  });

  it('rejects a certificate of another authority and names it as the cause (SYS-3, SYS-4)', async () => {
    const { exit, warnings } = await halts(at(other.caFile));
    expect(exit).toBe(2);
    expect(warnings).toMatch(/certificate/);
  });

  it('rejects a CA file for a cleartext address, and a file without certificates (SYS-3)', async () => {
    const cleartext = { ...at(own.caFile), WRIT_ADDRESS: `http://${address}` };
    expect((await halts(cleartext)).warnings).toMatch(/is a cleartext address/);
    expect((await halts(at(join(dir, 'missing.pem')))).warnings).toMatch(
      /missing\.pem cannot be read \(ENOENT\)\.$/,
    );
    expect((await halts(at(join(dir, 'not.pem')))).warnings).toMatch(
      /contains no certificate in PEM\.$/,
    );
  });
});
