import { fromBinary } from '@bufbuild/protobuf';
import { HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { isWritError, Priority, systemClock } from '@writ/kernel';
import { createOutboxRelay } from '@writ/store';
import {
  endSessions,
  isPostgresAvailable,
  type PostgresLocation,
  postgresLocation,
} from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Ledger } from '../src/app/pool/ledger.ts';
import { renewSlots } from '../src/app/slot/renew-slots.ts';
import type { SpawnStore } from '../src/store/spawn-store.ts';
import {
  acquireChild,
  type LedgerReplica,
  openLedgerReplica,
  openPoolOf,
  ROOT,
  releaseChild,
} from './ledger-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3', 'run-4'].map((runId) => ({ tenant: 'acme', runId }));
const MAX_AGENTS = 4;
const CLIENTS = 8;
const STEPS = 25;

type Replica = LedgerReplica<PostgresLocation>;

async function startReplica(location: PostgresLocation, onEvents: () => void): Promise<Replica> {
  const replica = await openLedgerReplica(location, onEvents);
  onTestFinished(() => replica.store.close());
  return replica;
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

async function runClient(replicas: readonly Replica[], client: number): Promise<void> {
  const random = seeded(client + 1);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  for (let step = 0; step < STEPS; step += 1) {
    const run = pick(RUNS);
    const instance = `c${client}-${step}`;
    const chance = random();
    if (client === 0 && chance < 0.2) await endSessions(pick(replicas).location);
    const known = async <T>(request: (replica: Replica) => Promise<T>): Promise<void> => {
      // A repeat of a request whose outcome is unknown goes to any replica (SB-9).
      while (!(await isKnown(request(pick(replicas)))));
    };
    await known(({ ledger }) => acquireChild(ledger, run, instance, pick(PRIORITIES)));
    if (chance > 0.9) await known(({ ledger }) => renewAll(ledger));
    if (chance > 0.3) await known(({ ledger }) => releaseChild(ledger, run, instance));
  }
}

const PRIORITIES = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL];

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
    for (const run of RUNS) await openPoolOf(ledger, run, MAX_AGENTS);
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
