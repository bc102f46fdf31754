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
let foreign: TestCertificates;
let address = '';

beforeAll(async () => {
  own = await generateTestCertificates(join(dir, 'own'));
  foreign = await generateTestCertificates(join(dir, 'foreign'));
  writeFileSync(join(dir, 'not.pem'), 'nothing of use');
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

/** The environment of a caller that trusts these authorities. */
const trusting = (caFile: string) => ({
  WRIT_API_KEY: platform.platform.apiKey,
  WRIT_ADDRESS: address,
  ...(caFile !== '' && { WRIT_CA_FILE: caFile }),
});

for (const program of callerPrograms())
  describe.skipIf(program.command.length === 0)(
    `the caller in ${program.language}, at an edge with TLS`,
    () => {
      const agents = (caFile: string) => callProgram(program, trusting(caFile), 'agents');

      it('calls whom its authorities vouch for (SYS-2)', async () => {
        const { code, lines, complaint } = await agents(own.caFile);
        expect({ code, complaint }).toEqual({ code: 0, complaint: '' });
        expect(lines.join('\n')).toContain('refund-worker: ');
      });

      it('calls nobody whom they do not vouch for, and says that it is the certificate (SYS-3, SYS-4)', async () => {
        const { code, lines, complaint } = await agents(foreign.caFile);
        expect({ code, lines }).toEqual({ code: 1, lines: [''] });
        expect(complaint).toMatch(/CERTIFICATE_VERIFY_FAILED|failed to verify certificate/);
        expect(complaint).not.toContain('Traceback');
      });

      it('gets no answer in cleartext (SYS-4)', async () => {
        expect(await agents('')).toMatchObject({ code: 1, lines: [''] });
      });

      it.each(['missing.pem', 'not.pem'])(
        'names its setting when it is of no use: %s (SYS-3)',
        async (name) => {
          const { code, complaint } = await agents(join(dir, name));
          expect(code).not.toBe(0);
          expect(complaint).toMatch(/^WRIT_CA_FILE: [^\n]+$/);
        },
      );
    },
  );

describe('the client in TypeScript, at an edge with TLS', () => {
  const client = (ca?: string) =>
    createWritClient({
      baseUrl: platform.platform.edgeUrl,
      apiKey: platform.platform.apiKey,
      ...(ca !== undefined && { ca }),
    });

  it('calls whom its authorities vouch for (SYS-2)', async () => {
    const { agents } = await client(own.ca).runs.listAgents({});
    expect(agents.map(({ name }) => name)).toContain('refund-worker');
  });

  it.each([
    ['those of others', () => foreign.ca],
    ['those that Node trusts', () => undefined],
  ])(
    'calls nobody else, with %s, and says that it is the certificate (SYS-3, SYS-4)',
    async (_, ca) => {
      await expect(client(ca()).runs.listAgents({})).rejects.toMatchObject({
        reason: 'CERTIFICATE_REJECTED',
        message: expect.stringMatching(/certificate/),
      });
    },
  );
});

describe('the writ command, at an edge with TLS', () => {
  async function halts(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
    const said: string[] = [];
    const exit = await runCli(['halts', ...args], {
      env,
      print: () => undefined,
      warn: (line) => said.push(line),
    });
    return { exit, said: said.join('\n') };
  }
  const at = (caFile: string) => ({
    ...trusting(caFile),
    WRIT_ADDRESS: platform.platform.edgeUrl,
  });

  it('calls whom its authorities vouch for, by setting or by option (SYS-2)', async () => {
    expect(await halts(at(own.caFile))).toEqual({ exit: 0, said: '' });
    expect(await halts(at(foreign.caFile), '--ca-file', own.caFile)).toEqual({ exit: 0, said: '' });
  });

  it('calls nobody whom they do not vouch for, and says that it is the certificate (SYS-3, SYS-4)', async () => {
    const { exit, said } = await halts(at(foreign.caFile));
    expect(exit).toBe(2);
    expect(said).toMatch(/certificate/);
  });

  it('takes no authorities for an address in cleartext, nor from a file that holds none (SYS-3)', async () => {
    const cleartext = { ...at(own.caFile), WRIT_ADDRESS: `http://${address}` };
    expect((await halts(cleartext)).said).toMatch(/is cleartext/);
    expect((await halts(at(join(dir, 'missing.pem')))).said).toMatch(
      /missing\.pem cannot be read \(ENOENT\)\.$/,
    );
    expect((await halts(at(join(dir, 'not.pem')))).said).toMatch(/holds no certificate in PEM\.$/);
  });
});
