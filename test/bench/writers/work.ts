import { reserve, settle } from '../../../services/execution-meter/src/app/tabs/reservations.ts';
import { setCaps } from '../../../services/execution-meter/src/app/tabs/set-caps.ts';
import { NO_USAGE } from '../../../services/execution-meter/src/domain/ledger/spending.ts';
import { openTabOf, openTabReplica } from '../../../services/execution-meter/test/tab-replica.ts';
import {
  acquireChild,
  openPoolOf,
  openPoolReplica,
  releaseChild,
} from '../../../services/spawn-budget/test/pool-replica.ts';

/** A schema on the server of the benchmark. */
export interface Location {
  readonly dialect: 'postgres';
  readonly url: string;
  readonly schema: string;
  readonly oneAtATime: boolean;
  /**
   * Source tree of the last commit that used one lock for all transactions (FORMER_COMMIT in former-work.ts); undefined
   * selects the current source tree.
   */
  readonly build?: string | undefined;
}

/** Names of the measured work. */
export type WorkName = 'spawn-budget' | 'execution-meter' | 'one-tenant';

/** Runs transactions of a service by calling its store code directly, without its gRPC listener. */
export interface Work {
  /** Prepares a writer with its own run; each call of the returned function commits `transactions` transactions. */
  writer(id: string): Promise<(n: number) => Promise<void>>;
  readonly transactions: number;
  /** Durable commits since the store was opened. */
  commits(): number;
  close(): Promise<void>;
}

/** Opens the store of a service. */
export const WORKS: Readonly<Record<WorkName, (location: Location) => Promise<Work>>> = {
  'spawn-budget': openSpawnWork,
  'execution-meter': (location) => openMeterWork(location, (id) => `tenant-${id}`),
  'one-tenant': (location) => openMeterWork(location, () => 'acme'),
};

/** Daily cap, far above the spending of a measurement. */
const DAY_CAP = { tokens: 10n ** 15n };

/** Acquires and releases a slot of the writer's run; grants are not signed. */
async function openSpawnWork(location: Location): Promise<Work> {
  const { store, repository } = await openPoolReplica(location);
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const run = { tenant: 'acme', runId: `run-${id}` };
      await openPoolOf(repository, run, 100);
      return async (n) => {
        await acquireChild(repository, run, `child-${n}`);
        await releaseChild(repository, run, `child-${n}`);
      };
    },
  };
}

/** Reserves and settles in the run of the writer, in a tenant with a daily cap. */
async function openMeterWork(location: Location, tenantOf: (id: string) => string): Promise<Work> {
  const context = await openTabReplica(location);
  const { store } = context;
  const usage = { ...NO_USAGE, input: 10n };
  return {
    transactions: 2,
    commits: () => store.commits,
    close: () => store.close(),
    writer: async (id) => {
      const tenant = tenantOf(id);
      const scope = { tenant, level: 'tenant_day', sessionId: '', runId: '' } as const;
      const request = { requestId: 'cap', requestDigest: '' };
      await setCaps(context, request, { ...scope, caps: DAY_CAP, setBy: 'bench' });
      const key = { tenant, runId: `run-${id}`, instance: 'root' };
      const owner = { ...key, sessionId: `session-${id}` };
      await openTabOf(context, owner, { tab: 1_000_000_000n });
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
