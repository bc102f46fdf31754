import { Priority, systemClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { openTab } from '../../../services/execution-meter/src/app/tabs/open-tab.ts';
import { reserve, settle } from '../../../services/execution-meter/src/app/tabs/reservations.ts';
import type { MeterContext } from '../../../services/execution-meter/src/context.ts';
import { Catalog } from '../../../services/execution-meter/src/domain/catalog/catalog.ts';
import { NO_USAGE } from '../../../services/execution-meter/src/domain/ledger/spending.ts';
import { createMeterEvents } from '../../../services/execution-meter/src/events.ts';
import { openMeterStore } from '../../../services/execution-meter/src/store/meter-store.ts';
import { Ledger } from '../../../services/spawn-budget/src/app/pool/ledger.ts';
import { openPool } from '../../../services/spawn-budget/src/app/pool/open-pool.ts';
import { PauseFeed } from '../../../services/spawn-budget/src/app/pool/pause-feed.ts';
import {
  acquireSlot,
  releaseSlot,
} from '../../../services/spawn-budget/src/app/slot/change-slot.ts';
import { createSpawnEvents } from '../../../services/spawn-budget/src/events.ts';
import { openSpawnStore } from '../../../services/spawn-budget/src/store/spawn-store.ts';

/** A schema on the server of the benchmark. */
export interface Location {
  readonly dialect: 'postgres';
  readonly url: string;
  readonly schema: string;
  readonly oneAtATime: boolean;
}

/** Names of the measured work. */
export type WorkName = 'spawn-budget' | 'execution-meter';

/** Transactions of a service, without its listener. */
export interface Work {
  /** Prepares a writer with a run of its own; the result commits `transactions` transactions. */
  writer(id: string): Promise<(n: number) => Promise<void>>;
  readonly transactions: number;
  /** Durable commits since the store was opened. */
  commits(): number;
  close(): Promise<void>;
}

const telemetry = createTelemetry({ service: 'bench', logLevel: 'silent' });

/** Opens the store of a service. */
export const WORKS: Readonly<Record<WorkName, (location: Location) => Promise<Work>>> = {
  'spawn-budget': openSpawnWork,
  'execution-meter': openMeterWork,
};

/** Acquires and releases a slot of the writer's run; grants are not signed. */
async function openSpawnWork(location: Location): Promise<Work> {
  const store = await openSpawnStore(location);
  const ledger = new Ledger({
    store,
    clock: systemClock,
    leaseMs: 600_000,
    events: createSpawnEvents(telemetry),
    feed: new PauseFeed(),
    onEvents: () => undefined,
  });
  const context = { ledger, config: { grantTtlMs: 0 }, signer: { clock: systemClock } } as never;
  const root = { name: 'lead', instance: 'root' };
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const run = { tenant: 'acme', runId: `run-${id}` };
      const request = { ...run, requestId: id, digest: id, traceparent: '', sessionId: id };
      const budget = { maxAgents: 100, allowPreempt: true };
      await openPool(ledger, request, { root, priority: Priority.NORMAL, budget });
      return async (n) => {
        const instance = `child-${n}`;
        const key = { ...run, instance, requestId: instance, digest: instance };
        const agent = { name: 'child', instance };
        const priority = Priority.NORMAL;
        await acquireSlot(
          context,
          { ...key, rpc: 'acquire' },
          { type: 'acquire', agent, parent: root, depth: 1, priority },
        );
        await releaseSlot({ ledger } as never, { ...key, rpc: 'release' });
      };
    },
  };
}

/** Reserves and settles in the run of the writer, each in a tenant of its own. */
async function openMeterWork(location: Location): Promise<Work> {
  const store = await openMeterStore(location, () => undefined);
  const context = {
    store,
    clock: systemClock,
    telemetry,
    events: createMeterEvents(telemetry, []),
    catalog: new Catalog(new Map()),
  } as unknown as MeterContext;
  const usage = { ...NO_USAGE, input: 10n };
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const key = { tenant: `tenant-${id}`, runId: `run-${id}`, agentInstance: 'root' };
      await openTab(context, {
        tab: {
          ...key,
          agentName: 'root',
          parent: undefined,
          sessionId: `session-${id}`,
          state: 'open',
          models: [],
          priority: Priority.NORMAL,
          deadline: undefined,
          near: { reserveTokens: 0n, reserveCostPpm: 0n },
          retention: 'permanent',
          requestId: id,
          requestDigest: id,
          eventKey: '',
          epoch: undefined,
          openedAt: new Date(),
          closedAt: undefined,
        },
        caps: { tokens: 1_000_000_000n },
        runCaps: undefined,
        sessionCaps: undefined,
      });
      return async (n) => {
        const request = { key, callId: `call-${n}`, requestDigest: '', traceparent: '' };
        await reserve(context, {
          ...request,
          hold: { usage, cost: 0n, turns: 1n },
          ttlMs: 600_000,
        });
        const spent = { usage, cost: 0n, turns: 1n, estimated: false, failed: false };
        await settle(context, { ...request, spent, model: '' });
      };
    },
  };
}
