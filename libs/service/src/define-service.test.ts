import fs, { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bus } from '@writ/bus';
import { ManualClock, systemClock } from '@writ/kernel';
import type { RpcServer } from '@writ/rpc';
import {
  appendOutbox,
  initialMigration,
  type OutboxDatabase,
  openStore,
  outboxTable,
  type Store,
} from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { BackgroundWork } from './background-work.ts';
import { defineService } from './define-service.ts';
import type { ServiceParts } from './service.ts';
import type { ServiceConfig, ServiceHost } from './service-host.ts';

/** Defines a service that records the start, stop and close of its parts in order. */
function recorded(
  change: {
    readonly prepare?: () => Promise<void>;
    readonly clock?: ManualClock;
    readonly drain?: () => Promise<void>;
    readonly file?: string;
    readonly background?: readonly BackgroundWork[];
  } = {},
) {
  const steps: string[] = [];
  const hosts: ServiceHost<ServiceConfig>[] = [];
  const stores: Store<OutboxDatabase>[] = [];
  const step = (name: string) => async () => void steps.push(name);
  const server = {
    address: 'host:1',
    setServing: (up: boolean) => void steps.push(up ? 'serving' : 'not serving'),
    close: step('calls ended'),
  } as unknown as RpcServer;
  const work = (name: string): BackgroundWork => ({
    start: step(`start ${name}`),
    stop: step(`stop ${name}`),
  });
  const bus = {
    publish: step('published'),
    hasSubscribers: () => true,
  } as unknown as Bus;
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-service-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const create = defineService({
    name: 'spawn-budget',
    async open(host: ServiceHost<ServiceConfig>) {
      hosts.push(host);
      host.defer(step('close first'));
      const store = await host.openStore(() => openOutbox(change.file));
      stores.push(store);
      host.defer(step('close second'));
      const late = {
        start: step('start late'),
        stop: async () => {
          steps.push('stop late');
          const message = { eventId: 'e', subject: 's', payload: new Uint8Array() };
          await store.transaction(async (trx) => appendOutbox(trx, message, systemClock.now()));
        },
      };
      return {
        server,
        prepare: change.prepare ?? step('prepare'),
        background: [work('early'), late, ...(change.background ?? [])],
        drain: change.drain ?? step('drain'),
        exposes: { shard: 7 },
      };
    },
  });
  const config: ServiceConfig = { host: '127.0.0.1', port: 0, dataDir, drainMs: 1_000 };
  const telemetry = createTelemetry({ service: 'spawn-budget', logLevel: 'silent' });
  const { clock = systemClock } = change;
  const parts: ServiceParts = { telemetry, bus, clock, addressOf: () => 'nowhere:1' };
  return { steps, hosts, stores, log: telemetry.log, create: () => create(config, parts) };
}

async function openOutbox(file = ':memory:') {
  return await openStore<OutboxDatabase>({
    location: { dialect: 'sqlite', file },
    migrations: initialMigration([outboxTable]),
    service: 'test',
  });
}

it('starts its parts in order, drains calls before it stops background work, and flushes the outbox before closing', async () => {
  const { steps, create } = recorded();
  const service = await create();
  expect(service).toMatchObject({ name: 'spawn-budget', address: 'host:1', shard: 7 });
  await service.start();
  expect(steps.splice(0)).toEqual(['prepare', 'start early', 'start late', 'serving']);
  await Promise.all([service.stop(), service.stop()]);
  expect(steps).toEqual([
    ...['not serving', 'calls ended', 'drain', 'stop late', 'stop early', 'published'],
    ...['close second', 'close first'],
  ]);
});

it('neither reports SERVING nor starts background work if `prepare` fails', async () => {
  const prepare = () => Promise.reject(new Error('no'));
  const { steps, create } = recorded({ prepare });
  const service = await create();
  await expect(service.start()).rejects.toThrow('no');
  expect(steps).toEqual([]);
  await service.stop();
});

it('reports NOT_SERVING while its clock is skewed (BD-3)', async () => {
  const clock = new ManualClock();
  const { steps, create, hosts } = recorded({ clock });
  const service = await create();
  onTestFinished(() => service.stop());
  await service.start();
  for (const peer of ['supervisor', 'agent-worker'])
    hosts[0]?.peerClocks.observe(peer, clock.now().getTime());
  steps.length = 0;
  clock.step(-3_600_000);
  await vi.waitFor(() => expect(steps).toEqual(['not serving']));
  expect(hosts[0]?.isClockSkewed()).toBe(true);
  clock.step(3_600_000);
  await vi.waitFor(() => expect(steps).toEqual(['not serving', 'serving']));
});

it('reports NOT_SERVING when the disk of its SQLite file has failed (SYS-4)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-service-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { steps, stores, create } = recorded({ file: join(folder, 'service.db') });
  const service = await create();
  // Stopping fails, because the last event cannot be stored.
  onTestFinished(() => service.stop().catch(() => undefined));
  await service.start();
  steps.length = 0;
  const sync = vi.spyOn(fs, 'fdatasync');
  sync.mockImplementationOnce((_file, done) => done(new Error('EIO')));
  // Updates the named imports of the function in other modules.
  syncBuiltinESMExports();
  const message = { eventId: 'e', subject: 's', payload: new Uint8Array() };
  const written = stores[0]?.transaction(async (trx) =>
    appendOutbox(trx, message, systemClock.now()),
  );
  await expect(written).rejects.toMatchObject({ reason: 'STORE_DISK_FAILED' });
  sync.mockRestore();
  syncBuiltinESMExports();
  await vi.waitFor(() => expect(steps).toEqual(['not serving']));
});

it('stops all background work and flushes the outbox even if one background task fails to stop (SYS-4)', async () => {
  const stuck = { start: () => undefined, stop: () => Promise.reject(new Error('stuck')) };
  const { steps, create } = recorded({ background: [stuck] });
  const service = await create();
  await service.start();
  steps.length = 0;
  await expect(service.stop()).rejects.toThrow('stuck');
  expect(steps).toEqual([
    ...['not serving', 'calls ended', 'drain', 'stop late', 'stop early', 'published'],
    ...['close second', 'close first'],
  ]);
});

it('closes the opened resources when opening fails, and rejects with the original error', async () => {
  const closed = vi.fn(() => Promise.reject(new Error('cannot close')));
  const failing = defineService({
    name: 'spawn-budget',
    async open(host: ServiceHost<ServiceConfig>) {
      host.defer(closed);
      throw new Error('port in use');
    },
  });
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-service-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const config: ServiceConfig = { host: '127.0.0.1', port: 0, dataDir, drainMs: 1 };
  const telemetry = createTelemetry({ service: 'spawn-budget', logLevel: 'silent' });
  const parts = { telemetry, bus: {} as Bus, addressOf: () => 'nowhere:1' };
  await expect(failing(config, parts)).rejects.toThrow('port in use');
  expect(closed).toHaveBeenCalledTimes(1);
});

it('logs what the service waits for when a stop takes over a second (SYS-3)', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { log, create } = recorded({ drain: () => promise });
  const info = vi.spyOn(log, 'info');
  const service = await create();
  await service.start();
  const stopped = service.stop();
  await vi.waitFor(() => {
    expect(info).toHaveBeenCalledWith(
      { waits_for: 'in-flight calls' },
      'service is still stopping',
    );
  });
  resolve();
  await stopped;
});
