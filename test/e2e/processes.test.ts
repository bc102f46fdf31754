import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { natsAuthorization, SERVICE_USERS } from '@writ/bus';
import { createWritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { devApiKey, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample, openModelSource, readPlatformConfig } from '@writ/platform';
import { type NatsServer, natsAtHand, startNatsServer } from '@writ/testing/nats';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const SERVICES = resolve(import.meta.dirname, '../../services');
const example = loadExample('refund-desk');

const variableOf = (service: ServiceName, what: string): string =>
  `WRIT_${service.toUpperCase().replaceAll('-', '_')}_${what}`;

/** Ports that are free now; each service must know where the others will be before they are there. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** Starts a service in a process of its own, and resolves when it listens. */
async function startService(
  service: ServiceName,
  env: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(SERVICES, service, 'src/main.ts')], {
    env: { ...env, PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes(' listens on ')) return child;
  }
  throw new Error(`${service} ended before it listened.`);
}

describe.skipIf(!natsAtHand())('five services in processes of their own, with NATS', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-processes-'));
  const children: ChildProcess[] = [];
  let nats: NatsServer;
  let edge = 0;
  let closeModel: () => Promise<void>;

  beforeAll(async () => {
    const passwords = Object.fromEntries(
      SERVICE_USERS.map(({ user, passwordVariable }) => [passwordVariable, `p-${user}`]),
    );
    nats = await startNatsServer({ config: natsAuthorization(SERVICE_USERS), env: passwords });
    const model = await openModelSource({}, example, { script: example.script, dataDir });
    closeModel = () => model.close();
    const [edgePort = 0, ...ports] = await freePorts(1 + SERVICE_NAMES.length);
    edge = edgePort;
    const places = SERVICE_NAMES.flatMap((service, index) => [
      [variableOf(service, 'PORT'), String(ports[index])],
      [variableOf(service, 'ADDRESS'), `127.0.0.1:${ports[index]}`],
    ]);
    const env = {
      ...readPlatformConfig({}, { example, model, dataDir }).env,
      ...Object.fromEntries(places),
      WRIT_EDGE_PORT: String(edge),
      WRIT_LOG_LEVEL: 'error',
      WRIT_NATS_URL: nats.address,
    };
    const start = (service: ServiceName) =>
      startService(service, { ...env, WRIT_NATS_PASSWORD: `p-${service}` });
    children.push(...(await Promise.all(SERVICE_NAMES.map(start))));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(
      children.map((child) => {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        return ended;
      }),
    );
    await closeModel?.();
    await nats?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }, 60_000);

  it('run the refund desk, and its timeline has what each of them tells (HK-1, HK-2, SYS-5)', async () => {
    const client = createWritClient({
      baseUrl: `http://127.0.0.1:${edge}`,
      apiKey: await devApiKey(dataDir),
    });
    const { run } = await client.runs.startRun({
      requestId: newId('req'),
      agent: example.agent,
      goal: example.goal,
      model: 'sim-auto-1000',
    });
    const told = async (): Promise<string[]> => {
      const names = new Map<number, string>(
        Object.entries(HookEventType).map(([name, type]) => [type, name]),
      );
      const events: string[] = [];
      for await (const { event } of client.runs.watchRun({ runId: run?.runId ?? '' })) {
        if (event?.entry.case === 'hook') events.push(names.get(event.entry.value.type) ?? '');
      }
      return events;
    };
    await vi.waitFor(
      async () => {
        const events = await told();
        const count = (name: string) => events.filter((event) => event === name).length;
        expect([count('RUN_START'), count('RUN_END')]).toEqual([1, 1]);
        for (const kind of ['STEP', 'LLM', 'TOOL']) {
          expect([kind, count(`${kind}_START`)]).toEqual([kind, count(`${kind}_END`)]);
          expect(count(`${kind}_END`)).toBeGreaterThan(1);
        }
      },
      { timeout: 15_000, interval: 100 },
    );
  });
});
