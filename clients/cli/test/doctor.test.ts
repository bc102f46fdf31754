import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startTestPlatform } from '@writ/testing/platform';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createProject, type ProjectFolder, writ } from './project-folder.ts';

interface Broken {
  readonly what: string;
  readonly breaks: (project: ProjectFolder) => void;
  readonly named: RegExp;
}

const BROKEN: readonly Broken[] = [
  {
    what: 'a missing file',
    breaks: ({ remove }) => remove('policy.yaml'),
    named: /has no policy\.yaml/,
  },
  {
    what: 'a tab in YAML',
    breaks: ({ change }) => change('agents.yaml', '    kind: react', '\t kind: react'),
    named: /agents\.yaml:5:\d+: .*[Tt]ab/,
  },
  {
    what: 'a misspelt key',
    breaks: ({ change }) => change('agents.yaml', 'instructions:', 'instruction:'),
    named: /agents\.yaml:7:5: .*instruction/,
  },
  {
    what: 'an agent whose tool does not exist',
    breaks: ({ change }) => change('agents.yaml', '[get_order, issue', '[get_ordr, issue'),
    named:
      /agents\.yaml:11:13: tool get_ordr does not exist\. Available tools: get_order, issue_voucher\./,
  },
  {
    what: 'an agent whose model does not exist',
    breaks: ({ change }) => change('agents.yaml', 'model: main', 'model: mian'),
    named: /agents\.yaml:10:\d+: model mian does not exist\. Available models: main\./,
  },
  {
    what: 'a provider key that is not set',
    breaks: ({ change }) =>
      change('models.yaml', 'OPENAI_API_KEY\n    model', 'ACME_KEY\n    model'),
    named: /models\.yaml:5:\d+: model main needs a provider key in ACME_KEY, which is not set\./,
  },
  {
    what: 'a variable that is not set',
    breaks: ({ change }) => change('models.yaml', 'OPENAI_MODEL:-gpt-4.1-mini', 'ACME_MODEL'),
    named: /models\.yaml:5:\d+: model main needs the variable ACME_MODEL, which is not set\./,
  },
  {
    what: 'a model without a price',
    breaks: ({ change }) => change('models.yaml', 'gpt-4.1-mini', 'acme-large'),
    named:
      /models\.yaml:5:\d+: model main has no price, because the price list does not have acme-large/,
  },
  {
    what: 'a sub-agent that does not exist',
    breaks: ({ change }) =>
      change('agents.yaml', '    tools:', '    sub_agents: [{ name: clerk }]\n    tools:'),
    named: /agents\.yaml:11:\d+: agent "clerk" is not defined/,
  },
  {
    what: 'a policy that reads an argument which the tool does not have',
    breaks: ({ change }) =>
      change(
        'policy.yaml',
        'when: cents(args.amount_usd) > limits',
        'when: cents(args.amount) > limits',
      ),
    named: /policy\.yaml:\d+:\d+: .*args\.amount does not exist; available: order or amount_usd/,
  },
  {
    what: 'a rule for a tool that does not exist',
    breaks: ({ change }) => change('policy.yaml', 'tool: get_order }', 'tool: get_orders }'),
    named: /policy\.yaml:\d+:\d+: .*no tool is named get_orders/,
  },
  {
    what: 'a cap of an argument that does not exist',
    breaks: ({ change }) => change('policy.yaml', 'argument: amount_usd', 'argument: amount'),
    named: /policy\.yaml:\d+:\d+: .*amount/,
  },
  {
    what: 'a policy without a rule for answers',
    breaks: ({ change }) =>
      change('policy.yaml', 'match: { kind: final }', 'match: { kind: delegation }'),
    named: /policy\.yaml:\d+:\d+: .*every answer is blocked/,
  },
  {
    what: 'a tool without a function',
    breaks: ({ change }) => change('tools.ts', 'issue_voucher: async', 'send_voucher: async'),
    named: /tools\.yaml:3:\d+: .*tools\.ts of the source shop has no function for issue_voucher/,
  },
  {
    what: 'a module whose package is not installed',
    breaks: ({ change }) => change('tools.ts', "'@writ/sdk'", "'acme-sdk'"),
    named: /imports the package acme-sdk, which is not installed; run npm install acme-sdk in/,
  },
  {
    what: 'a module that is not TypeScript',
    breaks: ({ write }) => write('tools.ts', 'export async function createTools( {'),
    named: /tools\.yaml:3:\d+: .*tools\.ts of the source shop cannot be loaded/,
  },
  {
    what: 'a custom agent without code',
    breaks: ({ change }) => {
      change('agents.yaml', 'kind: react', 'kind: custom');
      change('agents.yaml', '    limits: { max_iterations: 6 }\n', '');
    },
    named: /agents\.yaml:\d+:\d+: .*custom/,
  },
  {
    what: 'a script that is invalid',
    breaks: ({ change }) => change('simulator/default.yaml', 'name: default', 'name: other'),
    named: /simulator\/default\.yaml:\d+:\d+: name must be default/,
  },
];

describe('writ doctor', () => {
  it('finds nothing in a new project (SYS-3)', async () => {
    const { folder } = await createProject();
    const { exit, out } = await writ(['doctor', folder, '--no-platform']);
    expect(out).toEqual([
      expect.stringMatching(/^ok +files: /),
      expect.stringMatching(/^ok +disk: /),
    ]);
    expect(exit).toBe(0);
  });

  it.each(BROKEN)('names $what (SYS-3)', async ({ breaks, named }) => {
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
    // The name is not one of WRIT_AGENT_PROXY_HOSTS, or another server answers.
    const other = await at(`${test.platform.edgeUrl}/v1`);
    expect(other.out.join('\n')).toMatch(/^error +What answers at WRIT_AGENT_PROXY_URL=/m);
    expect(other.exit).toBe(1);
    const none = await at('http://127.0.0.1:1/v1');
    expect(none.out.join('\n')).toMatch(/^error +agent-proxy does not answer at/m);
  });

  it('names a platform that does not answer, and one with another clock (SYS-3)', async () => {
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
    const away = await writ(['doctor', folder, '--address', address]);
    expect(away.out.join('\n')).toMatch(/^warning +No platform answers at http:.*writ dev/m);
  });

  it('names a data folder that is a file (SYS-3)', async () => {
    const { folder } = await createProject();
    const WRIT_DATA = join(folder, 'agents.yaml');
    const { exit, out } = await writ(['doctor', folder, '--no-platform'], { WRIT_DATA });
    expect(out.join('\n')).toMatch(
      /^error +The data folder .*agents\.yaml cannot be written \(ENOTDIR\)/m,
    );
    expect(exit).toBe(1);
  });
});
