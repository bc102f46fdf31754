import { CHAIN_START } from '@writ/audit';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { AuditRow } from './append-audit.ts';
import type { ChainEnd } from './checkpoints.ts';

/** A linked record. */
export interface LinkedRecord extends Omit<AuditRow, 'position'> {
  readonly sequence: number;
  readonly previous_hash: string;
  readonly hash: string;
}

/** The filter of a list of audit records; empty or undefined fields do not filter. */
export interface AuditFilters {
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
  readonly kind: string;
  /** Inclusive. */
  readonly since: Date | undefined;
  /** Exclusive. */
  readonly until: Date | undefined;
}

/** The columns of a {@link ChainEnd}. */
export const CHAIN_END = ['tenant', 'sequence', 'hash', 'signed_count', 'checkpoints'] as const;

/** The end of a tenant's linked chain; sequence zero when it is empty. */
export async function readChainEnd(db: SupervisorReader, tenant: string): Promise<ChainEnd> {
  const row = await db
    .selectFrom('audit_chains')
    .select(CHAIN_END)
    .where('tenant', '=', tenant)
    .executeTakeFirst();
  return row ?? { tenant, sequence: 0, hash: CHAIN_START, signed_count: 0, checkpoints: 0 };
}

/** The ends of the linked chains of all tenants. */
export async function chainEnds(db: SupervisorReader): Promise<ChainEnd[]> {
  return await db.selectFrom('audit_chains').select(CHAIN_END).orderBy('tenant').execute();
}

/** The hash of a linked record; undefined if there is none. */
export async function hashOf(
  db: SupervisorReader,
  tenant: string,
  sequence: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('audit')
    .select('hash')
    .where('tenant', '=', tenant)
    .where('sequence', '=', sequence)
    .executeTakeFirst();
  return row?.hash ?? undefined;
}

/** The records of a chain after a sequence, at most `limit`. */
export async function readChain(
  db: SupervisorReader,
  { tenant, runId, instance, kind, since, until }: AuditFilters,
  after: number,
  limit: number,
): Promise<LinkedRecord[]> {
  let query = db
    .selectFrom('audit')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('sequence', '>', after);
  if (runId !== '') query = query.where('run_id', '=', runId);
  if (instance !== '') query = query.where('instance', '=', instance);
  if (kind !== '') query = query.where('kind', '=', kind);
  if (since !== undefined) query = query.where('recorded_at', '>=', since);
  if (until !== undefined) query = query.where('recorded_at', '<', until);
  const rows = await query.orderBy('sequence').limit(limit).execute();
  return rows.flatMap(({ position: _position, sequence, previous_hash, hash, ...row }) =>
    sequence === null || previous_hash === null || hash === null
      ? []
      : [{ ...row, sequence, previous_hash, hash }],
  );
}
