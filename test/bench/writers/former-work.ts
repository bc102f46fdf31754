import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Priority, systemClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import type { Location, Work, WorkName } from './work.ts';

/**
 * The last commit at which all transactions on PostgreSQL held the same lock, and each statement used one round trip.
 */
export const FORMER_COMMIT = 'd753114063bcfe293fbf09bead69090557416a1b';

/** A module of the former source tree, whose exports have no types here. */
type Module = Readonly<Record<string, never>>;

interface FormerStore {
  readonly commits: number;
  close(): Promise<void>;
}

/** A transaction of the former ledger. */
interface Books {
  readonly trx: unknown;
  readonly at: Date;
  readonly time: unknown;
  apply(key: object, event: object): { readonly changes: readonly object[] };
  open(pool: object): Promise<void>;
}

interface FormerLedger {
  transaction<T>(pools: readonly object[], work: (books: Books) => Promise<T>): Promise<T>;
}

type Handler = (request: object, call: object) => Promise<unknown>;

const ROOT = { name: 'lead', instance: 'root' };
const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** Opens the store of a service with the code of {@link FORMER_COMMIT}, which is checked out in `build`. */
export const FORMER_WORKS: Readonly<
  Record<WorkName, (location: Location, build: string) => Promise<Work>>
> = {
  'spawn-budget': openSpawnWork,
  'execution-meter': (location, build) => openMeterWork(location, build, (id) => `tenant-${id}`),
  'one-tenant': (location, build) => openMeterWork(location, build, () => 'acme'),
};

/** Acquires and releases a slot as the former handlers did, but does not convert messages or sign grants. */
async function openSpawnWork(location: Location, build: string): Promise<Work> {
  const from = (path: string) => load(build, `services/spawn-budget/src/${path}`);
  const { openSpawnStore } = await from('store/spawn-store.ts');
  const { Ledger } = await from('store/ledger.ts');
  const { PauseFeed } = await from('store/pause-feed.ts');
  const { createSpawnEvents } = await from('events.ts');
  const { openPool } = await from('domain/pool/open.ts');
  const { findAnswers, recordAnswer } = (await from('store/requests.ts')) as unknown as {
    findAnswers(trx: unknown, key: object): Promise<{ readonly same: object | undefined }>;
    recordAnswer(trx: unknown, key: object, answer: object, at: Date): Promise<void>;
  };
  const store = (await call(openSpawnStore, location)) as FormerStore;
  const ledger = construct(Ledger, {
    store,
    clock: systemClock,
    leaseMs: 600_000,
    events: call(createSpawnEvents, telemetry),
    feed: construct(PauseFeed),
    nudge: () => undefined,
  }) as FormerLedger;
  const change = async (key: { readonly instance: string }, event: object): Promise<void> => {
    await ledger.transaction([key], async (books) => {
      const { same } = await findAnswers(books.trx, key);
      if (same !== undefined) throw new Error('The request was made before.');
      const { changes } = books.apply(key, event);
      await recordAnswer(books.trx, key, { changes }, books.at);
    });
  };
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const run = { tenant: 'acme', runId: `run-${id}` };
      await ledger.transaction([run], async (books) => {
        const budget = { maxAgents: 100, allowPreempt: true };
        const opened = { root: ROOT, priority: Priority.NORMAL, budget };
        const request = { requestId: 'open', requestDigest: 'open', traceparent: '' };
        const pool = call(openPool, opened, books.time);
        await books.open({ ...run, ...request, pool, openedAt: books.at, closedAt: null });
      });
      return async (n) => {
        const instance = `child-${n}`;
        const request = { ...run, instance, requestId: instance, digest: instance };
        const agent = { name: 'child', instance };
        const acquire = { type: 'acquire', agent, parent: ROOT, depth: 1 };
        await change({ ...request, rpc: 'acquire' } as never, {
          ...acquire,
          priority: Priority.NORMAL,
        });
        await change({ ...request, rpc: 'release' } as never, { type: 'release', instance });
      };
    },
  };
}

/** Reserves and settles with the former handlers. */
async function openMeterWork(
  location: Location,
  build: string,
  tenantOf: (id: string) => string,
): Promise<Work> {
  const from = (path: string) => load(build, `services/execution-meter/src/${path}`);
  const { openMeterStore } = await from('store/meter-store.ts');
  const { createMeterEvents } = await from('events.ts');
  const { Catalog } = await from('domain/catalog/catalog.ts');
  const contracts = (path: string) => load(build, `libs/contracts/gen/writ/meter/v1/${path}`);
  const schemas = await contracts('execution_meter_service_pb.ts');
  const { create } = await import('@bufbuild/protobuf');
  const store = (await call(openMeterStore, location, () => undefined)) as FormerStore;
  const context = {
    store,
    clock: systemClock,
    telemetry,
    events: call(createMeterEvents, telemetry),
    catalog: construct(Catalog, new Map()),
  };
  const handlerOf = async (name: string, path: string): Promise<Handler> =>
    call((await from(`rpc/meter/${path}.ts`))[name], context) as Handler;
  const [openTab, reserve, settle] = await Promise.all([
    handlerOf('openTab', 'open-tab'),
    handlerOf('reserve', 'reserve'),
    handlerOf('settle', 'settle'),
  ]);
  const caller = { traceparent: '', caller: {}, log: telemetry.log };
  const request = (name: string, fields: object): object =>
    create(schemas[`${name}RequestSchema`] as never, fields as never);
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const run = { tenant: tenantOf(id), runId: `run-${id}` };
      const tab = { ...run, agentInstance: ROOT.instance };
      const opened = { ...run, requestId: 'open', agent: ROOT, sessionId: `session-${id}` };
      const budget = { maxTokens: 1_000_000_000n };
      await openTab(request('OpenTab', { ...opened, budget }), caller);
      return async (n) => {
        const spent = { tab, callId: `call-${n}`, costNanoUsd: 0n, turns: 1n };
        await reserve(request('Reserve', { ...spent, tokens: 10n }), caller);
        const usage = { inputTokens: 10n };
        await settle(request('Settle', { ...spent, usage }), caller);
      };
    },
  };
}

async function load(build: string, path: string): Promise<Module> {
  return (await import(pathToFileURL(join(build, path)).href)) as Module;
}

function call(work: unknown, ...given: readonly unknown[]): unknown {
  return (work as (...given: readonly unknown[]) => unknown)(...given);
}

function construct(type: unknown, ...given: readonly unknown[]): unknown {
  return new (type as new (...given: readonly unknown[]) => unknown)(...given);
}
