import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatLine, verifyExport } from '@writ/audit';
import { openSigner } from '@writ/identity';
import { isWritError, type JsonObject, systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { type ReplicaSet, runSchedules, type Schedule, schedulesOf } from '@writ/testing/schedules';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type ExportEntry, exportChain } from '../src/app/audit/read-audit.ts';
import { orderHalt } from '../src/app/halt/request-halt.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { headReader } from './audit-export.ts';
import {
  liftRecorded,
  openTimelineReplica,
  recordEvent,
  type TimelineReplica,
} from './timeline-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3'];
/** Liveness limit of all schedules on a busy machine, ms. */
const TIMEOUT_MS = 300_000 + schedulesOf(0.15) * 5_000;

/**
 * Makes the database reject each statement after which a timeline or the linked part of an audit chain has a gap (HK-1,
 * SV-8); a duplicate number violates a key.
 */
async function rejectGaps(store: SupervisorStore): Promise<void> {
  const gap = (table: string, key: string) =>
    `new.sequence > (select count(*) from ${table} where ${key} and sequence is not null)`;
  const timeline = gap('timeline', 'tenant = new.tenant and run_id = new.run_id');
  const chain = gap('audit', 'tenant = new.tenant');
  await store.transaction(async (trx) => {
    for (const [table, event, isGap] of [
      ['timeline', 'insert', timeline],
      ['audit', 'update', chain],
    ] as const) {
      if (store.dialect === 'sqlite') {
        // SQLite has no deferred constraint triggers, so a trigger checks each row before it is written, when the count
        // does not include the row.
        const before = isGap.replace('new.sequence >', 'new.sequence > 1 +');
        await sql
          .raw(
            `create trigger gap_in_${table} before ${event} on ${table} when ${before}
             begin select raise(abort, 'a gap in ${table}'); end`,
          )
          .execute(trx);
        continue;
      }
      const body = `begin if ${isGap} then raise exception 'gap in ${table}'; end if; return null; end`;
      await sql`create function ${sql.ref(`gap_in_${table}`)}() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
        trx,
      );
      await sql
        .raw(
          `create constraint trigger gap_in_${table} after ${event} on ${table}
           deferrable initially deferred for each row execute function gap_in_${table}()`,
        )
        .execute(trx);
    }
  });
}

/** The reviews and halts of one schedule, in a tenant of its own. */
class Reviews {
  readonly #supervisors: ReplicaSet<TimelineReplica>;
  readonly #tenant: string;
  readonly #dataDir: string;
  /** Sequences of the recorded events, by run and event id. */
  readonly #recorded = new Map(RUNS.map((runId) => [runId, new Map<string, number>()]));
  #halts = 0;

  constructor({ seed, replicas }: Schedule<TimelineReplica>, dataDir: string) {
    this.#supervisors = replicas;
    this.#tenant = `acme-${seed}`;
    this.#dataDir = dataDir;
  }

  async prepare(): Promise<void> {
    // Events need no preparation.
  }

  async step(random: () => number, name: string): Promise<void> {
    if (random() < 0.05) {
      await this.#halt(random, name);
      return;
    }
    const runId = RUNS[Math.floor(random() * RUNS.length)] ?? '';
    // A worker repeats a lost request; here it sends both requests at the same time, each to any replica.
    const both = [this.#record(random, runId, name), this.#record(random, runId, name)];
    const sequences = (await Promise.all(both)).filter((sequence) => sequence !== 'HALTED');
    expect(new Set(sequences).size).toBeLessThan(2);
    const [sequence] = sequences;
    if (sequence !== undefined) this.#recorded.get(runId)?.set(name, sequence);
  }

  /**
   * Checks that the timelines contain exactly the acknowledged events, without gaps, and that the exported chain is
   * valid.
   */
  async check(): Promise<void> {
    for (const runId of RUNS) await this.#checkTimeline(runId);
    const lines = await this.#supervisors.request(
      () => 0,
      async ({ context }) => {
        const { signal } = new AbortController();
        return (await Array.fromAsync(exportChain(context, this.#tenant, 0, signal))).map(lineOf);
      },
    );
    const events = [...this.#recorded.values()].reduce((sum, { size }) => sum + size, 0);
    const verified = await verifyExport(lines, await headReader(this.#dataDir), { after: 0 });
    expect(verified).toMatchObject({ holds: true, records: events + this.#halts });
  }

  async #checkTimeline(runId: string): Promise<void> {
    const rows = await this.#supervisors.request(
      () => 0,
      ({ store }) =>
        store.db
          .selectFrom('timeline')
          .select(['sequence', 'event_id'])
          .where('tenant', '=', this.#tenant)
          .where('run_id', '=', runId)
          .orderBy('sequence')
          .execute(),
    );
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, n) => n + 1));
    const found = new Map(rows.map((row) => [row.event_id, row.sequence]));
    expect(found).toEqual(this.#recorded.get(runId));
  }

  async #record(random: () => number, runId: string, eventId: string): Promise<number | 'HALTED'> {
    try {
      return await this.#supervisors.request(random, ({ context }) =>
        recordEvent(context, { tenant: this.#tenant, runId, eventId }),
      );
    } catch (error) {
      if (!isWritError(error)) throw error;
      expect(error.reason).toBe('HALTED');
      return 'HALTED';
    }
  }

  /**
   * Halts the tenant, and checks that after the response no replica records a decision until the halt is lifted (SV-9).
   */
  async #halt(random: () => number, requestId: string): Promise<void> {
    const person = { subject: 'mia', tenant: this.#tenant, roles: ['admin'] } as const;
    const scope = { tenant: this.#tenant };
    const request = { requestId, digest: '', scope, reason: 'Stop.', endRuns: false };
    const haltId = await this.#supervisors.request(random, ({ context }) =>
      orderHalt(context, person as never, request),
    );
    this.#halts += 1;
    const rejected = await this.#supervisors.requestAll(async ({ context }) => {
      const event = { tenant: this.#tenant, runId: 'run-1', eventId: `${requestId}-halted` };
      return await recordEvent(context, event).catch((error: unknown) => {
        if (!isWritError(error) || error.reason !== 'HALTED') throw error;
        return error.reason;
      });
    });
    expect(new Set(rejected)).toEqual(new Set(['HALTED']));
    await this.#supervisors.request(random, ({ context }) => liftRecorded(context, haltId));
  }
}

function lineOf(entry: ExportEntry): string {
  if (entry.case !== 'record') {
    return formatLine({ type: entry.case, signed: entry.checkpoint.signed });
  }
  const { sequence, previous_hash: previousHash, hash, canonical_json } = entry.record;
  const record = JSON.parse(canonical_json) as JsonObject;
  return formatLine({ type: 'record', sequence, previousHash, hash, record });
}

async function run(
  dialect: 'sqlite' | 'postgres',
  size: { maxReplicas: number; schedules: number },
) {
  const dataDir = await mkdtemp(join(tmpdir(), 'writ-keys-'));
  const keyDir = join(dataDir, 'keys');
  const signer = await openSigner({ service: 'supervisor', keyDir, clock: systemClock });
  const service = {
    open: (location: StoreLocation) => openTimelineReplica(location, signer),
    guard: ({ store }: TimelineReplica) => rejectGaps(store),
    scenario: (schedule: Schedule<TimelineReplica>) => new Reviews(schedule, dataDir),
  };
  try {
    await runSchedules({ service, dialect, clients: 5, steps: 8, ...size });
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

it(
  'keeps timelines without gaps, verified chains and halts in random schedules with kills on SQLite (HK-1, SV-8, SV-9)',
  async () => {
    await run('sqlite', { maxReplicas: 1, schedules: schedulesOf(0.1) });
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('supervisors on one PostgreSQL schema', () => {
  it(
    'keep timelines without gaps, verified chains and halts, with kills and lost sessions (HK-1, SV-8, SV-9, SYS-5)',
    async () => {
      await run('postgres', { maxReplicas: 4, schedules: schedulesOf(0.15) });
    },
    TIMEOUT_MS,
  );
});
