import { fromBinary } from '@bufbuild/protobuf';
import { HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { isWritError, Priority, systemClock } from '@writ/kernel';
import { createOutboxRelay, type StoreLocation } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Ledger } from '../src/app/pool/ledger.ts';
import { openPool } from '../src/app/pool/open-pool.ts';
import { PauseFeed } from '../src/app/pool/pause-feed.ts';
import { acquireSlot, releaseSlot } from '../src/app/slot/change-slot.ts';
import { renewSlots } from '../src/app/slot/renew-slots.ts';
import { createSpawnEvents } from '../src/events.ts';
import { openSpawnStore, type SpawnStore } from '../src/store/spawn-store.ts';

const RUNS = ['run-1', 'run-2', 'run-3', 'run-4'].map((runId) => ({ tenant: 'acme', runId }));
const ROOT = { name: 'lead', instance: 'root' };
const MAX_AGENTS = 4;
const CLIENTS = 8;
const STEPS = 25;

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** A spawn-budget without its listener; its grants are not signed. */
interface Replica {
  readonly store: SpawnStore;
  readonly ledger: Ledger;
}

async function startReplica(location: StoreLocation, onEvents: () => void): Promise<Replica> {
  const store = await openSpawnStore(location);
  onTestFinished(() => store.close());
  const ledger = new Ledger({
    store,
    clock: systemClock,
    leaseMs: 600_000,
    events: createSpawnEvents(telemetry),
    feed: new PauseFeed(),
    onEvents,
  });
  return { store, ledger };
}

/** Makes the server reject each commit after which a run has more slot holders than its cap (SB-6). */
async function rejectExceededCaps(store: SpawnStore): Promise<void> {
  const body = `begin
    if (select count(*) from members where tenant = new.tenant and run_id = new.run_id
        and state in ('active', 'suspended')) > ${MAX_AGENTS}
    then raise exception 'cap of % exceeded', new.run_id; end if;
    return null; end`;
  await store.transaction(async (trx) => {
    await sql`create function within_cap() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql`create constraint trigger within_cap after insert or update on members
      deferrable initially deferred for each row execute function within_cap()`.execute(trx);
  });
}

/** Numbers from 0 to 1 that are the same in each test run. */
function seeded(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function runClient(replicas: readonly Replica[], client: number): Promise<void> {
  const random = seeded(client + 1);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  for (let step = 0; step < STEPS; step += 1) {
    const run = pick(RUNS);
    const instance = `c${client}-${step}`;
    const chance = random();
    if (client === 0 && chance < 0.2) await endSessions(pick(replicas));
    const known = async <T>(request: (replica: Replica) => Promise<T>): Promise<void> => {
      // A repeat of a request whose outcome is unknown goes to any replica (SB-9).
      while (!(await isKnown(request(pick(replicas)))));
    };
    await known(({ ledger }) => acquire(ledger, run, instance, pick(PRIORITIES)));
    if (chance > 0.9) await known(({ ledger }) => renewAll(ledger));
    if (chance > 0.3) await known(({ ledger }) => free(ledger, run, instance));
  }
}

const PRIORITIES = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL];

type Run = (typeof RUNS)[number];

async function acquire(ledger: Ledger, run: Run, instance: string, priority: Priority) {
  const context = { ledger, config: { grantTtlMs: 0 }, signer: { clock: systemClock } } as never;
  const key = { ...run, instance, rpc: 'acquire', requestId: instance, digest: instance } as const;
  const agent = { name: 'child', instance };
  await acquireSlot(context, key, { type: 'acquire', agent, parent: ROOT, depth: 1, priority });
}

async function free(ledger: Ledger, run: Run, instance: string) {
  const key = { ...run, instance, rpc: 'release', requestId: instance, digest: instance } as const;
  await releaseSlot({ ledger } as never, key);
}

/** Renews the roots of all runs in one transaction. */
async function renewAll(ledger: Ledger) {
  const renewals = RUNS.map((run) => ({
    agent: run as never,
    event: { type: 'renew', instance: ROOT.instance, epoch: 1n, intent: 'run' } as const,
  }));
  await renewSlots(ledger, renewals);
}

async function isKnown(outcome: Promise<unknown>): Promise<boolean> {
  try {
    await outcome;
  } catch (error) {
    if (!isWritError(error)) throw error;
    if (!error.reason.startsWith('STORE_')) expect(error.reason).toBe('BUDGET_EXHAUSTED');
    else {
      expect(error.reason).toMatch(/^STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN)$/);
      return false;
    }
  }
  return true;
}

/** Ends the sessions with a transaction, as a failing network would. */
async function endSessions({ store }: Replica): Promise<void> {
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`
    .execute(store.db)
    .catch(() => undefined);
}

describe.runIf(isPostgresAvailable())('spawn-budgets on one PostgreSQL schema', () => {
  it('keep every cap and publish the changes of each run in order, with lost sessions (SB-6, HK-1, SYS-5)', async () => {
    const location = await postgresLocation();
    const published: { readonly id: string; readonly runId: string; readonly sequence: bigint }[] =
      [];
    const relays: { wake(): void }[] = [];
    const wake = () => relays[0]?.wake();
    const replicas = [
      await startReplica(location, wake),
      await startReplica(location, wake),
      await startReplica(location, wake),
    ];
    const [{ store, ledger }] = replicas as [Replica];
    await rejectExceededCaps(store);
    const relay = createOutboxRelay({
      store,
      publish: async ({ eventId, payload }) => {
        const { runId, slotSequence } = fromBinary(HookEventSchema, payload);
        // A lost mark repeats a message.
        if (published.some(({ id }) => id === eventId)) return;
        published.push({ id: eventId, runId, sequence: slotSequence });
      },
      onError: () => undefined,
      clock: systemClock,
      markIntervalMs: 200,
      pollMs: 20,
    });
    onTestFinished(() => relay.stop());
    relays.push(relay);
    relay.start();
    for (const run of RUNS) {
      const request = {
        ...run,
        requestId: 'open',
        digest: 'open',
        traceparent: '',
        sessionId: 's',
      };
      const budget = { maxAgents: MAX_AGENTS, allowPreempt: true };
      await openPool(ledger, request, { root: ROOT, priority: Priority.NORMAL, budget });
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => runClient(replicas, client)));
    await relay.flush();
    const rows = await store.db.selectFrom('outbox').select(['event_id', 'published_at']).execute();
    expect(new Set(published.map(({ id }) => id))).toEqual(
      new Set(rows.map(({ event_id }) => event_id)),
    );
    expect(rows.length).toBeGreaterThan(20);
    for (const { runId } of RUNS) {
      const sequences = published
        .filter((each) => each.runId === runId)
        .map((each) => each.sequence);
      expect(sequences).toEqual(sequences.toSorted((a, b) => Number(a - b)));
    }
  });
});
