import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { generateTestCertificates } from '@writ/testing/certificates';
import { startTestPlatform } from '@writ/testing/platform';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BROKEN_PROJECTS } from './broken-projects.ts';
import { createProject, writ } from './project-folder.ts';

describe('writ doctor', () => {
  it('reports no problem in a new project (SYS-3)', async () => {
    const { folder } = await createProject();
    const { exit, out } = await writ(['doctor', folder, '--no-platform']);
    expect(out).toEqual([
      expect.stringMatching(/^ok +files: /),
      expect.stringMatching(/^ok +disk: /),
    ]);
    expect(exit).toBe(0);
  });

  it('reports no problem if the models file refers to the simulator (SYS-3, SYS-5)', async () => {
    const { folder, change } = await createProject();
    change('models.yaml', 'OPENAI_BASE_URL:-https://api.openai.com/v1', 'WRIT_SIMULATOR_URL');
    change('models.yaml', 'OPENAI_API_KEY\n', 'WRIT_SIMULATOR_KEY\n');
    const { exit, out } = await writ(['doctor', folder, '--no-platform']);
    expect(out).toEqual([
      expect.stringMatching(/^ok +files: /),
      expect.stringMatching(/^ok +disk: /),
    ]);
    expect(exit).toBe(0);
  });

  it('reports no problem if a self-hosted server is set without a key (SYS-3, SYS-5)', async () => {
    const { folder } = await createProject();
    const env = { OPENAI_BASE_URL: 'http://localhost:11434/v1' };
    const { exit, out } = await writ(['doctor', folder, '--no-platform'], env);
    expect(out[0]).toMatch(/^ok +files: /);
    expect(exit).toBe(0);
  });

  it.each(BROKEN_PROJECTS)('reports $what (SYS-3)', async ({ breaks, named }) => {
    const project = await createProject();
    breaks(project);
    const { out } = await writ(['doctor', project.folder, '--no-platform']);
    expect(out.join('\n')).toMatch(named);
    expect(out.join('\n')).not.toMatch(/^ok +files/m);
  });

  it('ends with exit code 1 for an error, and lists every finding as JSON (SYS-3)', async () => {
    const project = await createProject();
    project.change('agents.yaml', '[get_order, issue', '[get_ordr, issue');
    project.change('agents.yaml', 'model: main', 'model: mian');
    const { exit, out } = await writ(['doctor', project.folder, '--no-platform', '-o', 'json']);
    const { findings } = JSON.parse(out.join('\n')) as { findings: { check: string }[] };
    expect(findings.map(({ check }) => check)).toEqual(['files', 'files']);
    expect(exit).toBe(1);
  });

  it('checks the running platform and its key (SYS-3)', async () => {
    const test = await startTestPlatform();
    onTestFinished(() => test.close());
    const { folder } = await createProject();
    const env = { WRIT_ADDRESS: test.platform.edgeUrl, WRIT_DATA: test.dataDir };
    const good = await writ(['doctor', folder], env);
    expect(good.out.join('\n')).toMatch(/^ok +clock: [\s\S]*^ok +key: the API key is accepted$/m);
    expect(good.exit).toBe(0);
    const wrong = await writ(['doctor', folder], { ...env, WRIT_API_KEY: 'writ_wrong' });
    expect(wrong.out.join('\n')).toMatch(/^error +.*writ keys create/m);
    expect(wrong.exit).toBe(1);
  });

  it('trusts the authorities of --ca-file and WRIT_CA_FILE (SYS-3, SYS-6)', async () => {
    const { folder } = await createProject();
    const dir = join(folder, 'tls');
    const { caFile, certFile, keyFile } = await generateTestCertificates(dir);
    const test = await startTestPlatform({
      env: {
        WRIT_EDGE_TLS_CERT_FILE: certFile('edge'),
        WRIT_EDGE_TLS_KEY_FILE: keyFile('edge'),
      },
    });
    onTestFinished(() => test.close());
    const env = { WRIT_ADDRESS: test.platform.edgeUrl, WRIT_DATA: test.dataDir };
    const checked = /^ok +clock: [\s\S]*^ok +key: the API key is accepted$/m;
    expect((await writ(['doctor', folder, '--ca-file', caFile], env)).out.join('\n')).toMatch(
      checked,
    );
    const named = await writ(['doctor', folder], { ...env, WRIT_CA_FILE: caFile });
    expect(named.out.join('\n')).toMatch(checked);
    const without = await writ(['doctor', folder], env);
    expect(without.out.join('\n')).toMatch(/^warning +No platform answers at https:.* \(\w+\)\./m);
  });

  it('checks that agent-proxy answers at its address (SYS-3, AP-1)', async () => {
    const test = await startTestPlatform();
    onTestFinished(() => test.close());
    const { folder } = await createProject();
    const at = (WRIT_AGENT_PROXY_URL: string) =>
      writ(['doctor', folder], {
        WRIT_ADDRESS: test.platform.edgeUrl,
        WRIT_DATA: test.dataDir,
        WRIT_AGENT_PROXY_URL,
      });
    const good = await at(test.platform.modelBaseUrl);
    expect(good.out.join('\n')).toMatch(/^ok +agent-proxy: agent-proxy answers at http/m);
    expect(good.exit).toBe(0);
    // The URL names a server that is not agent-proxy.
    const other = await at(`${test.platform.edgeUrl}/v1`);
    expect(other.out.join('\n')).toMatch(/^error +The server at WRIT_AGENT_PROXY_URL=/m);
    expect(other.exit).toBe(1);
    const none = await at('http://127.0.0.1:1/v1');
    expect(none.out.join('\n')).toMatch(
      /^error +agent-proxy does not answer at .* \(ECONNREFUSED\)\. /m,
    );
  });

  it('checks agent-proxy with the authorities of --ca-file, and names a rejected certificate (SYS-3, SYS-6)', async () => {
    const { folder } = await createProject();
    const { caFile, certFile, keyFile } = await generateTestCertificates(join(folder, 'tls'));
    const test = await startTestPlatform({
      env: {
        WRIT_EDGE_TLS_CERT_FILE: certFile('edge'),
        WRIT_EDGE_TLS_KEY_FILE: keyFile('edge'),
        WRIT_AGENT_PROXY_TLS_CERT_FILE: certFile('agent-proxy'),
        WRIT_AGENT_PROXY_TLS_KEY_FILE: keyFile('agent-proxy'),
      },
    });
    onTestFinished(() => test.close());
    const env = {
      WRIT_ADDRESS: test.platform.edgeUrl,
      WRIT_DATA: test.dataDir,
      WRIT_AGENT_PROXY_URL: test.platform.modelBaseUrl,
    };
    const trusted = await writ(['doctor', folder, '--ca-file', caFile], env);
    expect(trusted.out.join('\n')).toMatch(/^ok +agent-proxy: agent-proxy answers at https:/m);
    expect(trusted.exit).toBe(0);
    const without = await writ(['doctor', folder], env);
    expect(without.out.join('\n')).toMatch(
      /^error +The certificate of WRIT_AGENT_PROXY_URL=https:.* is rejected \(\w+\)\. .*--ca-file/m,
    );
    expect(without.exit).toBe(1);
  });

  it('checks agent-proxy with --ca-file if the address of the platform is cleartext (SYS-3, SYS-6)', async () => {
    const { folder } = await createProject();
    const { caFile, certFile, keyFile } = await generateTestCertificates(join(folder, 'tls'));
    const test = await startTestPlatform({
      env: {
        WRIT_AGENT_PROXY_TLS_CERT_FILE: certFile('agent-proxy'),
        WRIT_AGENT_PROXY_TLS_KEY_FILE: keyFile('agent-proxy'),
      },
    });
    onTestFinished(() => test.close());
    const { out } = await writ(['doctor', folder, '--ca-file', caFile], {
      WRIT_ADDRESS: test.platform.edgeUrl,
      WRIT_DATA: test.dataDir,
      WRIT_AGENT_PROXY_URL: test.platform.modelBaseUrl,
    });
    expect(test.platform.edgeUrl).toMatch(/^http:/);
    expect(out.join('\n')).toMatch(/^ok +agent-proxy: agent-proxy answers at https:/m);
  });

  it('advises to replace an expired certificate of agent-proxy (SYS-3)', async () => {
    const { folder } = await createProject();
    const { caFile, certFile, keyFile, renew } = await generateTestCertificates(
      join(folder, 'tls'),
    );
    await renew(-60_000);
    const server = createHttpsServer({
      cert: readFileSync(certFile('agent-proxy')),
      key: readFileSync(keyFile('agent-proxy')),
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { out } = await writ(['doctor', folder, '--ca-file', caFile], {
      WRIT_AGENT_PROXY_URL: `https://127.0.0.1:${port}/v1`,
    });
    expect(out.join('\n')).toMatch(
      / is rejected \(CERT_HAS_EXPIRED\)\. Replace the certificate\.$/m,
    );
  });

  it('trusts the default authorities for agent-proxy in addition to --ca-file (SYS-3, SYS-6)', async () => {
    const { folder } = await createProject();
    const trustedByDefault = await generateTestCertificates(join(folder, 'default'));
    const other = await generateTestCertificates(join(folder, 'other'));
    const test = await startTestPlatform({
      env: {
        WRIT_EDGE_TLS_CERT_FILE: other.certFile('edge'),
        WRIT_EDGE_TLS_KEY_FILE: other.keyFile('edge'),
        WRIT_AGENT_PROXY_TLS_CERT_FILE: trustedByDefault.certFile('agent-proxy'),
        WRIT_AGENT_PROXY_TLS_KEY_FILE: trustedByDefault.keyFile('agent-proxy'),
      },
    });
    onTestFinished(() => test.close());
    const authorities = getCACertificates('default');
    onTestFinished(() => setDefaultCACertificates(authorities));
    setDefaultCACertificates([readFileSync(trustedByDefault.caFile, 'utf8')]);
    const { exit, out } = await writ(['doctor', folder, '--ca-file', other.caFile], {
      WRIT_ADDRESS: test.platform.edgeUrl,
      WRIT_DATA: test.dataDir,
      WRIT_AGENT_PROXY_URL: test.platform.modelBaseUrl,
    });
    expect(out.join('\n')).toMatch(/^ok +agent-proxy: agent-proxy answers at https:/m);
    expect(exit).toBe(0);
  });

  it('reports a platform that does not respond or whose clock differs (SYS-3)', async () => {
    const { folder } = await createProject();
    const server = createServer((_, response) => {
      response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString());
      response.end('{"status":"SERVING"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const address = `127.0.0.1:${port}`;
    const late = await writ(['doctor', folder, '--address', address], { WRIT_API_KEY: 'k' });
    expect(late.out.join('\n')).toMatch(/^error +The clock of the platform .* by -3[56]\d\d s/m);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const unreachable = await writ(['doctor', folder, '--address', address]);
    expect(unreachable.out.join('\n')).toMatch(/^warning +No platform answers at http:.*writ dev/m);
  });

  it('reports a data folder path that is a file (SYS-3)', async () => {
    const { folder } = await createProject();
    const WRIT_DATA = join(folder, 'agents.yaml');
    const { exit, out } = await writ(['doctor', folder, '--no-platform'], { WRIT_DATA });
    expect(out.join('\n')).toMatch(/^error +.*agents\.yaml cannot be written \(ENOTDIR\)/m);
    expect(exit).toBe(1);
  });
});
