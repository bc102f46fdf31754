import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createWritClient, type WritClient } from '@writ/client';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { freePorts, isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { type NatsServer, startNatsServer } from '@writ/testing/nats';
import { type DedicatedPostgres, startDedicatedPostgres } from '@writ/testing/postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assemble } from '../../docker/assemble.ts';
import { generated, ROOT, readCompose } from './read-compose.ts';

const execute = promisify(execFile);
const START = 'deploy/docker/start.ts';
const compose = readCompose();
/** Appended to the agents of the refund desk. */
const EXTERNAL_AGENT = `
  - name: support-bot
    kind: external
    model: { model: sim-early-final }
`;
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

describe.skipIf(!isDistributedPlatformAvailable())(
  'the services of docker-compose.yml, without containers',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-compose-'));
    const image = join(folder, 'app');
    const volumes = join(folder, 'volumes');
    const children: ChildProcess[] = [];
    let nats: NatsServer;
    let postgres: DedicatedPostgres;
    let edge = 0;
    let endpoint = 0;
    let client: WritClient;

    /** Local address of each `host:port` of the compose network. */
    const localAddresses = new Map<string, string>();

    /** Environment of a container, with local addresses and folders. */
    const environmentOf = (name: string): Record<string, string> => {
      const { environment = {} } = compose.services[name] ?? {};
      const localize = (value: string): string => {
        let text = value.replace(/^0\.0\.0\.0$/, '127.0.0.1');
        text = text.replace(/(^|=)\/data\//g, `$1${join(volumes, name)}/`);
        for (const [internal, address] of localAddresses)
          text = text.replace(new RegExp(`(^|[/@])${internal}(?=$|/)`), `$1${address}`);
        return text;
      };
      return Object.fromEntries(
        Object.entries(environment).map(([key, value]) => [key, localize(value)]),
      );
    };

    const start = async (name: string, env: Readonly<Record<string, string>>): Promise<void> => {
      const child = spawn(process.execPath, [START, ...(compose.services[name]?.command ?? [])], {
        cwd: image,
        env: {
          ...environmentOf(name),
          OTEL_EXPORTER_OTLP_ENDPOINT: '',
          WRIT_LOG_LEVEL: 'error',
          ...env,
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      children.push(child);
      for await (const line of createInterface({ input: child.stdout }))
        if (line.includes(' listens on ')) return;
      throw new Error(`${name} exited before it listened.`);
    };

    const startService = (name: ServiceName, port: number): Promise<void> =>
      start(name, {
        [`WRIT_${name.toUpperCase().replaceAll('-', '_')}_PORT`]: String(port),
        WRIT_EDGE_PORT: String(edge),
        WRIT_AGENT_PROXY_ENDPOINT_PORT: String(endpoint),
        WRIT_AGENTS_FILE: join(folder, 'agents.yaml'),
        WRIT_DATA: join(volumes, name),
      });

    /** Configuration of the NATS server, with local files; `startNatsServer` sets the port and the data folder. */
    const natsConfig = (): string =>
      read('deploy/nats/nats-server-tls.conf')
        .replace('include "nats-server.conf"', read('deploy/nats/nats-server.conf'))
        .replace('include "users.conf"', read('deploy/nats/users.conf'))
        .replace(/^(listen|http): .*$/gm, '')
        .replace(/^jetstream \{[^}]*\}/m, '')
        .replaceAll('"/tls/', `"${join(volumes, 'nats')}/`);

    /** TLS parameters of a URL with the certificate of `name`. */
    const tlsParameters = (name: ServiceName): string => {
      const tls = join(volumes, name, 'tls');
      return `?sslmode=verify-full&sslrootcert=${tls}/ca.crt&sslcert=${tls}/service.crt&sslkey=${tls}/service.key`;
    };

    const psql = async (url: string, ...args: readonly string[]): Promise<string> => {
      const env = { ...process.env, ...Object.fromEntries(generated) };
      const { stdout } = await execute('psql', ['-qAt', '--no-psqlrc', ...args, url], { env });
      return stdout.trim();
    };

    beforeAll(async () => {
      assemble(image);
      writeFileSync(
        join(folder, 'agents.yaml'),
        `${read('examples/refund-desk/agents.yaml')}${EXTERNAL_AGENT}`,
      );
      const [edgePort = 0, endpointPort = 0, postgresPort = 0, simulator = 0, ...ports] =
        await freePorts(10);
      edge = edgePort;
      endpoint = endpointPort;
      await execute(process.execPath, [START, 'prepare', volumes], { cwd: image });
      nats = await startNatsServer({ config: natsConfig(), env: Object.fromEntries(generated) });
      postgres = await startDedicatedPostgres(postgresPort, {
        certFile: join(volumes, 'postgres/server.crt'),
        keyFile: join(volumes, 'postgres/server.key'),
        caFile: join(volumes, 'postgres/ca.crt'),
        // The administrator of the test connects over TCP, not over the socket.
        hba: `hostssl all writ all trust clientcert=verify-ca\n${read('deploy/postgres/pg_hba.conf')}`,
      });
      const roles = join(ROOT, 'deploy/postgres/roles.sql');
      await psql(postgres.url() + tlsParameters('supervisor'), '-f', roles);
      localAddresses.set('nats:4222', nats.address).set('postgres:5432', postgres.address);
      localAddresses.set('simulator:8090', `127.0.0.1:${simulator}`);
      for (const [index, name] of SERVICE_NAMES.entries())
        localAddresses.set(`${name}:${50_051 + index}`, `127.0.0.1:${ports[index]}`);
      await start('simulator', { WRIT_SIMULATOR_PORT: String(simulator) });
      await Promise.all(SERVICE_NAMES.map((name, index) => startService(name, ports[index] ?? 0)));
      const key = ['--tenant', 'default', '--subject', 'me', '--role', 'caller', 'approver'];
      const created = await execute(
        process.execPath,
        [START, 'cli', 'keys', 'create', '--data', join(volumes, 'supervisor'), ...key],
        { cwd: image },
      );
      const apiKey = created.stdout.trim();
      client = createWritClient({ baseUrl: `http://127.0.0.1:${edge}`, apiKey });
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
      await postgres?.stop();
      await nats?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it('connect to PostgreSQL with certificate and password, and are rejected if either is missing (SYS-4, SYS-6)', async () => {
      const { WRIT_SUPERVISOR_DATABASE_URL = '' } = environmentOf('supervisor');
      const ask = (url: string) => psql(url, '-c', 'select 1');
      expect(await ask(WRIT_SUPERVISOR_DATABASE_URL)).toBe('1');
      const [bare = '', tls = ''] = WRIT_SUPERVISOR_DATABASE_URL.split('?');
      await expect(ask(`${bare}?sslmode=disable`)).rejects.toThrow('no encryption');
      await expect(ask(`${bare}?sslmode=require`)).rejects.toThrow('client certificate');
      const guessed = bare.replace(/:[^:@]+@/, ':guessed@');
      await expect(ask(`${guessed}?${tls}`)).rejects.toThrow('password authentication failed');
      // The health check of the container presents no certificate.
      const at = ['-q', '-h', '127.0.0.1', '-p', postgres.address.split(':')[1] ?? ''];
      await execute('pg_isready', [...at, '-U', 'postgres']);
      const sessions = await psql(
        postgres.url() + tlsParameters('supervisor'),
        '-c',
        `select distinct application_name, ssl, version from pg_stat_ssl join pg_stat_activity using (pid)
         where application_name like 'writ %' order by 1`,
      );
      const lines = SERVICE_NAMES.map((name) => `writ ${name}|t|TLSv1.3`).sort();
      expect(sessions.split('\n')).toEqual(lines);
    });

    it('need TLS and a certificate for NATS (SYS-4, SYS-6)', async () => {
      const [host = '', port = ''] = nats.address.split(':');
      const socket = connect(Number(port), host);
      const [greeting] = await once(socket, 'data');
      socket.destroy();
      const info = JSON.parse(String(greeting).replace(/^INFO /, ''));
      expect(info).toMatchObject({ tls_required: true, tls_verify: true });
    });

    it('run the refund desk with the roles, users, certificates and settings of the file (SYS-5, SYS-6)', async () => {
      const { agent, goal } = loadExample('refund-desk');
      const { run } = await client.runs.startRun({
        requestId: newId('req'),
        agent,
        goal,
        model: 'sim-auto-1000',
      });
      await expect
        .poll(async () => (await client.runs.getRun({ runId: run?.runId ?? '' })).run?.state)
        .toBe(RunState.COMPLETED);
    });

    it('serve an external agent at the port of agent-proxy, and meter its model calls (AP-1, AP-2)', async () => {
      const { run } = await client.runs.startRun({
        requestId: newId('req'),
        agent: 'support-bot',
        goal: 'Answer.',
      });
      const runId = run?.runId ?? '';
      const { token, modelBaseUrl } = await client.runs.issueRunToken({ runId });
      expect(modelBaseUrl).toBe('http://127.0.0.1:8081/v1');
      const ask = () =>
        fetch(`${modelBaseUrl.replace('8081', String(endpoint))}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            model: 'sim-early-final',
            messages: [{ role: 'user', content: '{"state_summary":{"steps_completed":0}}' }],
          }),
        });
      await expect.poll(async () => (await ask()).status).toBe(200);
      await client.runs.closeRun({ requestId: newId('req'), runId });
      await expect
        .poll(async () => (await client.runs.getRun({ runId })).run?.state)
        .toBe(RunState.COMPLETED);
    });
  },
);
