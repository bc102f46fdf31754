import {
  type Scope,
  type ScopeSubject,
  scopeKey,
  scopesOver,
  UnavailableError,
} from '@writ/kernel';
import { prepareQuery, RowCache, type RowOf } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import { type Halt, haltedError, haltsCovering } from '../../domain/halt/halt.ts';
import { haltNotFound } from '../../domain/halt/halt-rights.ts';
import { noteChange } from '../change/commit-notes.ts';
import type { halts } from '../schema/halt.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The row of a halt. */
export type HaltRow = RowOf<typeof halts>;

/** Inserts a halt: from the commit on, reviews, approvals and starts of runs in its scope are rejected (SV-9). */
export async function insertHalt(trx: SupervisorTransaction, halt: HaltRow): Promise<void> {
  await trx.insertInto('halts').values(halt).execute();
  cache.clear(trx);
}

/** The halt, undefined if it does not exist. */
export async function findHalt(db: SupervisorReader, haltId: string): Promise<HaltRow | undefined> {
  return await db.selectFrom('halts').selectAll().where('halt_id', '=', haltId).executeTakeFirst();
}

/**
 * Loads a halt.
 * @throws NotFoundError HALT_NOT_FOUND
 */
export async function loadHalt(db: SupervisorReader, haltId: string): Promise<HaltRow> {
  const row = await findHalt(db, haltId);
  if (row === undefined) throw haltNotFound(haltId);
  return row;
}

/** Updates columns of a halt, and notifies its watchers. */
export async function saveHalt(
  trx: SupervisorTransaction,
  haltId: string,
  changes: Partial<HaltRow>,
): Promise<void> {
  await trx.updateTable('halts').set(changes).where('halt_id', '=', haltId).execute();
  cache.clear(trx);
  noteChange(trx, 'halts');
}

/** Observes the number of halts in force, by kind of scope, on every export of metrics. */
export function observeHalts(
  { metrics }: Telemetry,
  { db }: { readonly db: SupervisorReader },
): void {
  metrics.observe('haltsInForce', async () => {
    const rows = await db
      .selectFrom('halts')
      .select(['tenant', 'run_id', 'instance'])
      .where('lifted_at', 'is', null)
      .execute();
    const counts = new Map(['all', 'tenant', 'run', 'agent'].map((scope) => [scope, 0]));
    for (const { tenant, run_id, instance } of rows) {
      const parts = [tenant, run_id, instance].filter((part) => part !== null).length;
      const scope = ['all', 'tenant', 'run', 'agent'][parts] ?? 'all';
      counts.set(scope, (counts.get(scope) ?? 0) + 1);
    }
    return [...counts].map(([scope, value]) => ({ value, labels: { 'writ.scope': scope } }));
  });
}

/** The scope of a row. */
export function scopeOf({ tenant, run_id, instance }: HaltRow): Scope {
  return {
    ...(tenant !== null && { tenant }),
    ...(run_id !== null && { runId: run_id }),
    ...(instance !== null && { instance }),
  };
}

/** Converts a row. */
export function haltOf(row: HaltRow): Halt {
  return {
    haltId: row.halt_id,
    scope: scopeOf(row),
    reason: row.reason,
    orderedBy: row.ordered_by,
    orderedAt: row.ordered_at,
    liftedAt: row.lifted_at,
  };
}

interface ScopeTexts {
  readonly everything: string;
  readonly tenant: string;
  readonly run: string;
  readonly agent: string;
}

/** Prepared, because every review runs the query. */
const selectInForce = prepareQuery((db: SupervisorReader, scopes: ScopeTexts) =>
  db
    .selectFrom('halts')
    .selectAll()
    .where('scope', 'in', [scopes.everything, scopes.tenant, scopes.run, scopes.agent])
    .where('lifted_at', 'is', null),
);

/** Returns the oldest halt in force that covers a subject; undefined when the subject is not halted (SV-9). */
export async function haltCovering(
  db: SupervisorReader,
  subject: ScopeSubject,
): Promise<Halt | undefined> {
  const halts = await haltsFor(db, subject);
  return halts.length === 0 ? undefined : haltsCovering(halts, subject)[0];
}

/** Limit of cached halts; if more halts are in force, the halts of each agent are read and cached separately. */
export const MAX_CACHED_HALTS = 1_000;
const NOT_CACHED = 'not cached';
const IN_FORCE = 'in force';

/**
 * All halts in force under the key IN_FORCE, or the halts that cover one agent under the key of its scope. All
 * statements that change the table are in this file.
 */
const cache = new RowCache<readonly Halt[] | typeof NOT_CACHED>({ areLocked: true });

/** Returns halts in force, including all that cover the subject. */
async function haltsFor(db: SupervisorReader, subject: ScopeSubject): Promise<readonly Halt[]> {
  const all = await cachedHalts(db);
  if (all !== NOT_CACHED) return all;
  const [everything, tenant, run, agent] = scopesOver(subject);
  const known = cache.get(db, agent) ?? NOT_CACHED;
  if (known !== NOT_CACHED) return known;
  const { rows } = await selectInForce(db, { everything, tenant, run, agent });
  const halts = rows.map(haltOf);
  cache.set(db, agent, halts);
  return halts;
}

/**
 * All halts in force. Returns NOT_CACHED in three cases: there are more than MAX_CACHED_HALTS, the database is
 * PostgreSQL, or `db` is not a transaction.
 */
async function cachedHalts(db: SupervisorReader): Promise<readonly Halt[] | typeof NOT_CACHED> {
  const known = cache.get(db, IN_FORCE);
  if (known !== undefined) return known;
  if (!cache.keeps(db)) return NOT_CACHED;
  const { rows } = await selectAllInForce(db, { limit: MAX_CACHED_HALTS + 1 });
  const read = rows.length > MAX_CACHED_HALTS ? NOT_CACHED : rows.map(haltOf);
  cache.set(db, IN_FORCE, read);
  return read;
}

const selectAllInForce = prepareQuery(
  (db: SupervisorReader, { limit }: { readonly limit: number }) =>
    db
      .selectFrom('halts')
      .selectAll()
      .where('lifted_at', 'is', null)
      .orderBy('ordered_at')
      .orderBy('halt_id')
      .limit(limit),
);

/**
 * Rejects a halted subject.
 * @throws PreconditionError HALTED naming who ordered the halt and why
 */
export async function assertNotHalted(db: SupervisorReader, subject: ScopeSubject): Promise<void> {
  const halt = await haltCovering(db, subject);
  if (halt !== undefined) throw haltedError(halt);
}

/** Returns the error with which a step fails while its run or agent is halted; the engine retries the step. */
export function delayedBy(halt: Halt): UnavailableError {
  const { message, metadata } = haltedError(halt);
  return new UnavailableError('HALTED', message, metadata);
}

/** Filter and position of a page of halts. */
export interface HaltFilter {
  /** Halts that affect this tenant; undefined = all. */
  readonly tenant: string | undefined;
  readonly inForceOnly: boolean;
  readonly after: { readonly orderedAt: Date; readonly haltId: string } | undefined;
  readonly limit: number;
}

/** Halts, newest first. */
export async function selectHalts(db: SupervisorReader, filter: HaltFilter): Promise<HaltRow[]> {
  const { tenant, inForceOnly, after, limit } = filter;
  let query = db.selectFrom('halts').selectAll();
  if (tenant !== undefined) {
    query = query.where((row) => row.or([row('tenant', '=', tenant), row('tenant', 'is', null)]));
  }
  if (inForceOnly) query = query.where('lifted_at', 'is', null);
  if (after !== undefined) {
    query = query.where((row) =>
      row.or([
        row('ordered_at', '<', after.orderedAt),
        row.and([row('ordered_at', '=', after.orderedAt), row('halt_id', '<', after.haltId)]),
      ]),
    );
  }
  return await query
    .orderBy('ordered_at', 'desc')
    .orderBy('halt_id', 'desc')
    .limit(limit)
    .execute();
}

/** The row of a new halt. */
export function newHalt(given: {
  readonly haltId: string;
  readonly scope: Scope;
  readonly reason: string;
  readonly endRuns: boolean;
  readonly orderedBy: string;
  readonly orderedFor: string;
  readonly at: Date;
}): HaltRow {
  const { scope } = given;
  return {
    halt_id: given.haltId,
    scope: scopeKey(scope),
    tenant: scope.tenant ?? null,
    run_id: scope.runId ?? null,
    instance: scope.instance ?? null,
    reason: given.reason,
    end_runs: given.endRuns,
    ordered_by: given.orderedBy,
    ordered_for: given.orderedFor,
    ordered_at: given.at,
    state: 'pending',
    meter_at: null,
    gateway_at: null,
    meter_in_flight: '[]',
    gateway_in_flight: '[]',
    resumed_by: null,
    lifted_at: null,
  };
}
