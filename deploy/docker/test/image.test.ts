import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { createRpcServer } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assemble } from '../assemble.ts';
import type { Parts } from '../parts.ts';

const START = 'deploy/docker/start.ts';

type Program = ChildProcessByStdio<null, Readable, Readable>;

/** The result of a program: its exit status and its output on stderr. */
const SUCCESS = { status: 0, report: '' };
const REFUSED = { status: 1, report: expect.stringContaining('ECONNREFUSED') };

/** Makes a folder read-only (root can still write), or writable by its owner again. */
function setWritable(folder: string, isWritable: boolean): void {
  const [dirMode, fileMode] = isWritable ? [0o755, 0o644] : [0o555, 0o444];
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) setWritable(path, isWritable);
    else if (entry.isFile()) chmodSync(path, fileMode);
  }
  chmodSync(folder, dirMode);
}

/** Every file below a folder, with its modification time. */
function snapshot(folder: string): string[] {
  return globSync('**', { cwd: folder })
    .map((path) => `${path} ${lstatSync(join(folder, path)).mtimeMs}`)
    .sort();
}

describe('the contents of the image, assembled in a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-image-'));
  const image = join(folder, 'app');
  const data = join(folder, 'data');
  const children: Program[] = [];
  /** Standard error of the programs that `start` has started; they write only errors to it. */
  let errors = '';
  let parts: Parts;
  let before: string[];

  beforeAll(() => {
    parts = assemble(image);
    mkdirSync(data);
    setWritable(image, false);
    before = snapshot(image);
  });
  afterAll(async () => {
    await Promise.all(
      children.map(async (child) => {
        if (child.exitCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }),
    );
    if (errors !== '') process.stderr.write(errors);
    setWritable(image, true);
    rmSync(folder, { recursive: true, force: true });
  });

  const run = (args: readonly string[], env: Readonly<Record<string, string>>): Program =>
    spawn(process.execPath, [START, ...args], {
      cwd: image,
      env: {
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        WRIT_DATA: data,
        WRIT_LOG_LEVEL: 'error',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });

  /** Starts a program and returns its address. */
  const start = async (name: string, env: Readonly<Record<string, string>>): Promise<string> => {
    const child = run([name], env);
    children.push(child);
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    for await (const line of createInterface({ input: child.stdout })) {
      const address = / listens on ([^\s,]+)/.exec(line)?.[1];
      if (address !== undefined) return address;
    }
    throw new Error(`${name} exited before it listened.`);
  };

  /** Runs a program to its end. */
  const ended = async (
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number | null; readonly report: string }> => {
    const child = run(args, env);
    child.stdout.resume();
    const [report] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    return { status: child.exitCode, report };
  };

  const variable = (service: ServiceName, what: string) =>
    `WRIT_${service.toUpperCase().replaceAll('-', '_')}_${what}`;

  it('have the run-time dependencies, and none for building or testing (SYS-5)', () => {
    const others = parts.fromRegistry.map((path) => path.replace(/^.*node_modules\//, ''));
    expect(others).toContain('@grpc/grpc-js');
    for (const tool of ['typescript', 'vitest', '@biomejs/biome', '@bufbuild/buf', 'node', 'knip'])
      expect(others).not.toContain(tool);
    expect(globSync('**/*.{test.ts,d.ts,map}', { cwd: image })).toEqual([]);
  });

  it.each([...SERVICE_NAMES])(
    'start %s with a successful health check (SYS-2, SYS-5)',
    async (service) => {
      const env = {
        [variable(service, 'PORT')]: '0',
        WRIT_EDGE_PORT: '0',
        WRIT_AGENT_PROXY_ENDPOINT_PORT: '0',
      };
      const [, port = ''] = (await start(service, env)).split(':');
      const health = (at: string) =>
        ended(['health', service], { [variable(service, 'PORT')]: at });
      expect(await health(port)).toEqual(SUCCESS);
      expect(await health('1')).toEqual(REFUSED);
    },
  );

  it('distinguish a hung service from one that is not serving (SYS-4)', async () => {
    const service = 'spawn-budget';
    // Uses a separate data folder, because another instance runs in the data folder of the other tests.
    const address = await start(service, {
      [variable(service, 'PORT')]: '0',
      WRIT_DATA: join(data, 'hung'),
    });
    const alive = (at: string) =>
      ended(['health', service, 'alive'], { [variable(service, 'PORT')]: at });
    const port = address.split(':')[1] ?? '';
    expect(await alive(port)).toEqual(SUCCESS);
    const hung = children.at(-1);
    hung?.kill('SIGSTOP');
    try {
      expect(await alive(port)).toEqual({ status: 1, report: 'The health check timed out.\n' });
    } finally {
      hung?.kill('SIGCONT');
    }
    expect(await alive(port)).toEqual(SUCCESS);
    expect(await alive('1')).toEqual(REFUSED);

    const telemetry = createTelemetry({ service: 'not-serving', logLevel: 'silent' });
    const idle = { host: '127.0.0.1', port: 0, routes: [], gate: async () => ({}), telemetry };
    const server = await createRpcServer(idle);
    expect(await alive(String(server.port))).toEqual(SUCCESS);
    const env = { [variable(service, 'PORT')]: String(server.port) };
    expect(await ended(['health', service], env)).toEqual({ status: 1, report: '' });
    await server.close(0);
  });

  it('issue certificates, which are required to reach a service (SYS-6)', async () => {
    const folder = join(data, 'prepare');
    for (const once of ['made', 'renewed'])
      expect([once, await ended(['prepare', folder])]).toEqual([once, SUCCESS]);
    const tls = (service: ServiceName) => ({
      WRIT_TLS_CERT_FILE: join(folder, service, 'tls/service.crt'),
      WRIT_TLS_KEY_FILE: join(folder, service, 'tls/service.key'),
      WRIT_TLS_CA_FILE: join(folder, service, 'tls/ca.crt'),
    });
    const env = { WRIT_DATA: join(data, 'tls'), WRIT_SPAWN_BUDGET_PORT: '0' };
    const [, port = ''] = (await start('spawn-budget', { ...env, ...tls('spawn-budget') })).split(
      ':',
    );
    const health = (tlsFiles: Readonly<Record<string, string>>) =>
      ended(['health', 'spawn-budget'], { WRIT_SPAWN_BUDGET_PORT: port, ...tlsFiles });
    for (const service of SERVICE_NAMES)
      expect(existsSync(join(folder, service, `keys/${service}.jwks.json`))).toBe(true);
    expect(await health(tls('spawn-budget'))).toEqual(SUCCESS);
    expect(await health({})).toMatchObject({ status: 1 });
    // With a certificate of another authority, calls fail, but `alive` succeeds, because the service responds to the
    // TLS handshake.
    const foreign = join(data, 'foreign');
    await ended(['prepare', foreign]);
    const foreignTls = Object.fromEntries(
      Object.entries(tls('spawn-budget')).map(([name, file]) => [
        name,
        file.replace(folder, foreign),
      ]),
    );
    expect(await health(foreignTls)).toEqual({
      status: 1,
      report: expect.stringContaining('self-signed certificate'),
    });
    const alive = ['health', 'spawn-budget', 'alive'];
    const found = await ended(alive, { WRIT_SPAWN_BUDGET_PORT: port, ...foreignTls });
    expect(found).toMatchObject({ status: 0 });
  });

  it('replace the authority step by step, with each step distributed to the services (SYS-6)', async () => {
    const folder = join(data, 'replaced');
    const authority = join(folder, 'authority');
    const prepared = async () => expect(await ended(['prepare', folder])).toEqual(SUCCESS);
    const step = (...args: readonly string[]) =>
      ended(['cli', 'certs', authority, '--replace-ca', ...args]);
    const own = (file: string) => readFileSync(join(folder, 'supervisor/tls', file), 'utf8');
    const authorities = () =>
      own('ca.crt').match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs) ?? [];
    const isSignedBy = (ca = '') =>
      new X509Certificate(own('service.crt')).verify(new X509Certificate(ca).publicKey);
    await prepared();
    const [old] = authorities();
    expect(await step('begin')).toEqual(SUCCESS);
    await prepared();
    const [first, next] = authorities();
    expect([first, isSignedBy(first)]).toEqual([old, true]);
    expect(await step('issue', '--also', 'nats', 'postgres')).toEqual(SUCCESS);
    await prepared();
    expect(authorities()).toEqual([next, old]);
    expect(isSignedBy(next)).toBe(true);
    expect(await step('finish')).toEqual(SUCCESS);
    await prepared();
    expect([authorities(), isSignedBy(next)]).toEqual([[next], true]);
  });

  it('start the model simulator, and create an API key', async () => {
    const address = await start('simulator', { WRIT_SIMULATOR_PORT: '0' });
    const answer = await fetch(`http://${address}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(answer.status).toBe(401);
    const made = run(
      ['cli', 'keys', 'create', '--tenant', 't', '--subject', 's', '--role', 'caller'],
      {},
    );
    const [key, report] = await Promise.all([text(made.stdout), text(made.stderr)]);
    expect(key).toMatch(/^\S{20,}\n$/);
    expect(report).toMatch(/^Store the key now; it is not shown again\./);
  });

  it('are never modified, so that the file system can be read-only', () => {
    expect(snapshot(image)).toEqual(before);
  });

  it('print the available programs for an unknown argument', async () => {
    const { status, report } = await ended(['nothing']);
    expect(status).toBe(2);
    for (const name of SERVICE_NAMES) expect(report).toContain(name);
  });
});
