import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { freePorts } from '@writ/testing/distributed';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { EXTERNAL_AGENTS, startExternalRun } from './external-run.ts';
import type { AgentReport } from './isolated-agent.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const AGENT = join(import.meta.dirname, 'isolated-agent.ts');
const PROVIDER_KEY = 'sk-of-the-provider';
/** TEST-NET-2 of RFC 5737: the namespace has no route to it. */
const OUTSIDE = '198.51.100.1:443';
/**
 * Command prefix that runs a program in a new network namespace with loopback only; without root it needs user
 * namespaces.
 */
const ISOLATE = ['unshare', '--map-root-user', '--net'];
const LOOPBACK_UP = 'ip link set lo up && exec "$@"';

/**
 * Returns whether this machine permits network namespaces, and prints the reason when it does not, as in many
 * containers. With WRIT_REQUIRE_NAMESPACES=1, throws an Error instead.
 */
function hasNamespaces(): boolean {
  const [command = '', ...args] = [...ISOLATE, 'sh', '-c', LOOPBACK_UP, '-', 'true'];
  try {
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    return true;
  } catch (error) {
    const reason = `the leak check of external agents needs unshare, ip and network namespaces: ${String(error)}`;
    if (process.env.WRIT_REQUIRE_NAMESPACES === '1') throw new Error(reason);
    process.stderr.write(`skipped: ${reason}\n`);
    return false;
  }
}

/**
 * Forwards a Unix socket to the port of agent-proxy and returns its path; Unix sockets are reachable from other network
 * namespaces.
 */
async function bridge(folder: string, port: number): Promise<string> {
  const path = join(folder, 'agent-proxy.sock');
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    pipeline(client, upstream, client, () => undefined);
  });
  server.listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return path;
}

/** Runs the agent with only PATH and the variables `env` in its environment; `how` is a command prefix. */
async function runAgent(
  how: readonly string[],
  env: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<AgentReport & { readonly output: string }> {
  const [command = '', ...rest] = [...how, process.execPath, AGENT, ...args];
  const options = { env: { PATH: process.env.PATH, ...env }, timeout: 60_000 };
  const { stdout, stderr } = await promisify(execFile)(command, rest, options);
  return { ...(JSON.parse(stdout) as AgentReport), output: stdout + stderr };
}

/** Returns the other addresses of the platform: the public port, the services and the model. */
function otherAddresses({ platform }: TestPlatform, modelUrl: string): string[] {
  const public_ = [platform.edgeUrl, modelUrl].map((url) => new URL(url).host);
  return [...public_, ...Object.values(platform.addresses)];
}

it.skipIf(!hasNamespaces())(
  'serves an agent that can reach only agent-proxy and has no provider key (AP-1, SYS-6)',
  async () => {
    const model = await scriptedModel((request, response) =>
      answerText(request, response, 'Good day.'),
    );
    const folder = mkdtempSync(join(tmpdir(), 'writ-leak-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const models = `models:\n  support-model: { base_url: "${model.url}", api_key_env: LEAK_KEY, model: gpt-4.1-mini }\n`;
    const test = await startTestPlatform({
      files: { WRIT_MODELS_FILE: models, WRIT_AGENTS_FILE: EXTERNAL_AGENTS },
      env: { LEAK_KEY: PROVIDER_KEY },
    });
    onTestFinished(() => test.close());
    const { token, baseUrl } = await startExternalRun(test);
    const socket = await bridge(folder, Number(new URL(baseUrl).port));
    const others = otherAddresses(test, model.url);
    const [port = 0] = await freePorts(1);
    const env = { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, OPENAI_API_KEY: token };

    const isolated = [...ISOLATE, 'sh', '-c', LOOPBACK_UP, '-'];
    const agent = await runAgent(isolated, env, [socket, String(port), ...others, OUTSIDE]);
    expect(agent).toMatchObject({ answer: 'Good day.', streamed: 'Good day.', reached: [] });
    expect(agent.interfaces).toEqual(['lo']);
    expect(Object.keys(agent.environment)).not.toContain('LEAK_KEY');
    expect(agent.output).not.toContain(PROVIDER_KEY);
    // The meter sent the provider key to the provider.
    const keys = model.requests.map(({ headers }) => headers.authorization);
    expect(keys).toEqual([`Bearer ${PROVIDER_KEY}`, `Bearer ${PROVIDER_KEY}`]);
    expect(JSON.stringify(model.requests.map(({ headers }) => headers))).not.toContain(token);

    // Outside the namespace, the same agent reaches all these addresses, so the namespace alone blocks them.
    const open = await runAgent([], env, [socket, String(port), ...others]);
    expect(open).toMatchObject({ answer: 'Good day.', reached: others });
  },
);
