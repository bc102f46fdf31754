import { CHAIN_START, linkHash } from '@writ/audit';
import { type PreparedQuery, prepareQuery } from '@writ/store';
import { sql } from 'kysely';
import { noteChange } from '../change/commit-notes.ts';
import type { SupervisorDatabase } from '../schema/index.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import type { ChainEnd } from './checkpoints.ts';
import { CHAIN_END } from './read-chain.ts';

/** The last record of a chain. */
interface LastRecord {
  readonly sequence: number;
  readonly hash: string;
}

interface Link extends LastRecord {
  readonly position: number | bigint;
  readonly previousHash: string;
}

/** A batch of linked records. */
export interface LinkedBatch {
  readonly records: number;
  /** The last records of the existing chains before the batch. */
  readonly before: readonly ChainEnd[];
  /** The last records of the extended chains after the batch. */
  readonly after: readonly {
    readonly tenant: string;
    readonly count: number;
    readonly hash: string;
    readonly checkpoints: number;
  }[];
}

/**
 * Links up to `limit` records, each to the end of its tenant's chain (SV-8). The transaction must hold the chainer's
 * lease, which prevents forks of a chain.
 */
export async function linkAudit(
  trx: SupervisorTransaction,
  limit: number,
  now: Date,
): Promise<LinkedBatch> {
  const { rows: records } = await selectUnlinked(trx, { limit });
  const before = await endsOf(trx, new Set(records.map(({ tenant }) => tenant)));
  const ends = new Map<string, LastRecord>(before);
  const links = records.map(({ position, tenant, canonical_json }): Link => {
    const { sequence: last, hash: previousHash } = ends.get(tenant) ?? FIRST;
    const end = { sequence: last + 1, hash: linkHash(previousHash, canonical_json) };
    ends.set(tenant, end);
    return { position, previousHash, ...end };
  });
  await saveLinks(trx, links);
  await saveEnds(trx, ends, now);
  if (records.length > 0) noteChange(trx, 'audit-linked');
  const after = [...ends].map(([tenant, { sequence: count, hash }]) => {
    const { checkpoints = 0 } = before.get(tenant) ?? {};
    return { tenant, count, hash, checkpoints };
  });
  return { records: records.length, before: [...before.values()], after };
}

async function saveLinks(trx: SupervisorTransaction, links: readonly Link[]): Promise<void> {
  for (let from = 0; from < links.length; ) {
    const part = links.slice(from, from + partOf(links.length - from));
    const values = part.flatMap((link, index) =>
      LINK_COLUMNS.map(([name]) => [`${index}.${name}`, link[name]] as const),
    );
    await updateLinks(part.length)(trx, Object.fromEntries(values));
    from += part.length;
  }
}

/**
 * Returns the number of records in the next statement: `left` if it is at most MAX_EXACT_BATCH, otherwise the largest
 * power of two that is not above `left`, so that few statements are prepared.
 */
function partOf(left: number): number {
  return left <= MAX_EXACT_BATCH ? left : 2 ** Math.floor(Math.log2(left));
}

// PostgreSQL does not derive the types of the parameters of VALUES from the columns that they are assigned to.
const LINK_COLUMNS = [
  ['position', sql`bigint`],
  ['sequence', sql`bigint`],
  ['previousHash', sql`text`],
  ['hash', sql`text`],
] as const;

const MAX_EXACT_BATCH = 32;

type LinkValues = Readonly<Record<string, Link[keyof Link] | undefined>>;

const linkUpdates = new Map<number, PreparedQuery<SupervisorDatabase, LinkValues, unknown>>();

/** Returns the statement that links `count` records; one statement is prepared for each count. */
function updateLinks(count: number): PreparedQuery<SupervisorDatabase, LinkValues, unknown> {
  const known = linkUpdates.get(count);
  if (known !== undefined) return known;
  const query = prepareQuery<SupervisorDatabase, LinkValues, unknown>((db, values) => {
    const rows = Array.from({ length: count }, (_, index) => {
      const row = LINK_COLUMNS.map(
        ([name, type]) => sql`cast(${values[`${index}.${name}`]} as ${type})`,
      );
      return sql`(${sql.join(row)})`;
    });
    return db
      .updateTable('audit')
      .from(sql`(values ${sql.join(rows)})`.as('link'))
      .set({
        sequence: sql.ref<number>('link.column2'),
        previous_hash: sql.ref<string>('link.column3'),
        hash: sql.ref<string>('link.column4'),
      })
      .where('audit.position', '=', sql.ref<number | bigint>('link.column1'))
      .where('audit.sequence', 'is', null);
  });
  linkUpdates.set(count, query);
  return query;
}

const selectUnlinked = prepareQuery((db: SupervisorReader, { limit }: { readonly limit: number }) =>
  db
    .selectFrom('audit')
    .select(['position', 'tenant', 'canonical_json'])
    .where('sequence', 'is', null)
    .orderBy('position')
    .limit(limit),
);

/** Whether there are unlinked records. */
export async function hasUnlinked(db: SupervisorReader): Promise<boolean> {
  return (await selectFirstUnlinked(db, {})).rows.length > 0;
}

const selectFirstUnlinked = prepareQuery((db: SupervisorReader) =>
  db.selectFrom('audit').select('position').where('sequence', 'is', null).limit(1),
);

/**
 * Returns the highest position of an unlinked record of a tenant that is at most `upTo`; undefined when there is none.
 */
export async function lastUnlinked(
  db: SupervisorReader,
  tenant: string,
  upTo?: number | bigint,
): Promise<number | bigint | undefined> {
  let query = db
    .selectFrom('audit')
    .select('position')
    .where('tenant', '=', tenant)
    .where('sequence', 'is', null);
  if (upTo !== undefined) query = query.where('position', '<=', upTo);
  return (await query.orderBy('position', 'desc').limit(1).executeTakeFirst())?.position;
}

const FIRST: LastRecord = { sequence: 0, hash: CHAIN_START };

async function endsOf(
  trx: SupervisorTransaction,
  tenants: ReadonlySet<string>,
): Promise<Map<string, ChainEnd>> {
  if (tenants.size === 0) return new Map();
  const rows = await trx
    .selectFrom('audit_chains')
    .select(CHAIN_END)
    .where('tenant', 'in', [...tenants])
    .execute();
  return new Map(rows.map((end) => [end.tenant, end]));
}

/** Saves the ends of all chains of a batch in one statement; each record may belong to a different tenant. */
async function saveEnds(
  trx: SupervisorTransaction,
  ends: ReadonlyMap<string, LastRecord>,
  now: Date,
): Promise<void> {
  if (ends.size === 0) return;
  const unsigned = { signed_count: 0, checkpoints: 0, signed_at: now };
  const rows = Array.from(ends, ([tenant, { sequence, hash }]) => ({
    tenant,
    sequence,
    hash,
    ...unsigned,
  }));
  await trx
    .insertInto('audit_chains')
    .values(rows)
    .onConflict((conflict) =>
      conflict.column('tenant').doUpdateSet((row) => ({
        sequence: row.ref('excluded.sequence'),
        hash: row.ref('excluded.hash'),
      })),
    )
    .execute();
}
