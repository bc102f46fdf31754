import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createWritClient } from '@writ/client';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { distributedAtHand, freePorts } from '@writ/testing/distributed';
import { type NatsServer, startNatsServer } from '@writ/testing/nats';
import { type OwnPostgres, startOwnPostgres } from '@writ/testing/postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assemble } from '../../docker/assemble.ts';
import { generated, ROOT, readCompose } from './read-compose.ts';

const execute = promisify(execFile);
const START = 'deploy/docker/start.ts';
const compose = readCompose();

describe.skipIf(!distributedAtHand())(
  'the services of docker-compose.yml, without containers',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-compose-'));
    const image = join(folder, 'app');
    const volumes = join(folder, 'volumes');
    const children: ChildProcess[] = [];
    let nats: NatsServer;
    let postgres: OwnPostgres;
    let edge = 0;

    /** Where each name of the compose network is here. */
    const places = new Map<string, string>();

    /** What compose gives a container, with names and folders as they are here. */
    const environmentOf = (name: string): Record<string, string> => {
      const { environment = {} } = compose.services[name] ?? {};
      const here = (value: string): string => {
        let text = value.replace(/^0\.0\.0\.0$/, '127.0.0.1');
        text = text.replace(/^\/data\//, `${join(volumes, name)}/`);
        for (const [place, address] of places)
          text = text.replace(new RegExp(`(^|[/@])${place}(?=$|/)`), `$1${address}`);
        return text;
      };
      return Object.fromEntries(
        Object.entries(environment).map(([key, value]) => [key, here(value)]),
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
      throw new Error(`${name} ended before it listened.`);
    };

    const startService = (name: ServiceName, port: number): Promise<void> =>
      start(name, {
        [`WRIT_${name.toUpperCase().replaceAll('-', '_')}_PORT`]: String(port),
        WRIT_EDGE_PORT: String(edge),
        WRIT_DATA: join(volumes, name),
      });

    beforeAll(async () => {
      assemble(image);
      const [edgePort = 0, postgresPort = 0, simulator = 0, ...ports] = await freePorts(8);
      edge = edgePort;
      nats = await startNatsServer({
        config: readFileSync(join(ROOT, 'deploy/nats/users.conf'), 'utf8'),
        env: Object.fromEntries(generated),
      });
      postgres = await startOwnPostgres(postgresPort);
      const roles = join(ROOT, 'deploy/postgres/roles.sql');
      await execute('psql', ['-q', '--no-psqlrc', '-f', roles, postgres.url()], {
        env: { ...process.env, ...Object.fromEntries(generated) },
      });
      places.set('nats:4222', nats.address).set('postgres:5432', postgres.address);
      places.set('simulator:8090', `127.0.0.1:${simulator}`);
      for (const [index, name] of SERVICE_NAMES.entries())
        places.set(`${name}:${50_051 + index}`, `127.0.0.1:${ports[index]}`);
      await execute(process.execPath, [START, 'prepare', volumes], { cwd: image });
      await start('simulator', { WRIT_SIMULATOR_PORT: String(simulator) });
      await Promise.all(SERVICE_NAMES.map((name, index) => startService(name, ports[index] ?? 0)));
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

    it('run the refund desk with the roles, users, certificates and settings that the file gives them (SYS-5, SYS-6)', async () => {
      const key = ['--tenant', 'default', '--subject', 'me', '--role', 'caller', 'approver'];
      const data = ['--data', join(volumes, 'supervisor')];
      const made = await execute(
        process.execPath,
        [START, 'cli', 'keys', 'create', ...data, ...key],
        {
          cwd: image,
        },
      );
      const client = createWritClient({
        baseUrl: `http://127.0.0.1:${edge}`,
        apiKey: made.stdout.trim(),
      });
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
  },
);
