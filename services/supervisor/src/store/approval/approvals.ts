import { NotFoundError, type RunKey } from '@writ/kernel';
import { prepareQuery, type RowOf } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import { sql } from 'kysely';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import { appendAudit } from '../audit/append-audit.ts';
import type { Topic } from '../change/changes.ts';
import { noteChange } from '../change/commit-notes.ts';
import { saveDecision } from '../review/decisions.ts';
import type { approvals } from '../schema/review.ts';
import type {
  SupervisorReader,
  SupervisorStore,
  SupervisorTransaction,
} from '../supervisor-store.ts';

/** The row of an approval. */
export type ApprovalRow = RowOf<typeof approvals>;

/** The topic of the approvals of a tenant. */
export function approvalsTopic(tenant: string): Topic {
  return `approvals:${tenant}`;
}

/** Inserts an approval; does nothing when it exists (SV-5). */
export async function insertApproval(
  trx: SupervisorTransaction,
  approval: ApprovalRow,
): Promise<void> {
  await trx
    .insertInto('approvals')
    .values(approval)
    .onConflict((conflict) => conflict.column('approval_id').doNothing())
    .execute();
  noteChange(trx, approvalsTopic(approval.tenant));
}

/** The approval, undefined if it does not exist for the tenant. */
export async function findApproval(
  db: SupervisorReader,
  tenant: string,
  approvalId: string,
): Promise<ApprovalRow | undefined> {
  return await db
    .selectFrom('approvals')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('approval_id', '=', approvalId)
    .executeTakeFirst();
}

/**
 * Loads an approval. An approval of another tenant is reported as not found (SYS-6).
 * @throws NotFoundError APPROVAL_NOT_FOUND
 */
export async function loadApproval(
  db: SupervisorReader,
  tenant: string,
  approvalId: string,
): Promise<ApprovalRow> {
  const row = await findApproval(db, tenant, approvalId);
  if (row !== undefined) return row;
  throw new NotFoundError('APPROVAL_NOT_FOUND', `Approval ${approvalId} does not exist.`, {
    approval_id: approvalId,
  });
}

/** Updates columns of an approval. */
export async function saveApproval(
  trx: SupervisorTransaction,
  { tenant, approval_id }: Pick<ApprovalRow, 'tenant' | 'approval_id'>,
  changes: Partial<ApprovalRow>,
): Promise<void> {
  await trx
    .updateTable('approvals')
    .set(changes)
    .where('tenant', '=', tenant)
    .where('approval_id', '=', approval_id)
    .execute();
  noteChange(trx, approvalsTopic(tenant));
}

/** All approvals of a run, oldest first. */
export async function approvalsOf(db: SupervisorReader, key: RunKey): Promise<ApprovalRow[]> {
  return (await selectOfRun(db, key)).rows;
}

const selectOfRun = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('approvals')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('created_at')
    .orderBy('approval_id'),
);

/**
 * Whether the expiry time of an approval has passed. The approval may still be extended after a halt is lifted, until
 * the runs in the scope of the halt are resumed.
 */
export function hasExpired({ expires_at }: Pick<ApprovalRow, 'expires_at'>, at: Date): boolean {
  return expires_at !== null && expires_at <= at;
}

/** The answer of the approver; undefined while pending, and for an expired or withdrawn approval. */
export function humanAnswerOf(row: ApprovalRow): HumanAnswer | undefined {
  const { approval_id: approvalId, approved, comment, basis, decided_by, decided_at } = row;
  if (approved === null || decided_by === null || decided_at === null) return undefined;
  return {
    approvalId,
    approved,
    comment: comment ?? '',
    basis: basis ?? '',
    decidedBy: decided_by,
    decidedAt: decided_at.toISOString(),
  };
}

/**
 * Withdraws the pending approvals of an ended run, or of one ended agent (SV-5).
 * @returns the number of withdrawn approvals
 */
export async function withdrawApprovals(
  trx: SupervisorTransaction,
  run: RunKey & { readonly instance?: string },
  at: Date,
): Promise<number> {
  const pending = (await approvalsOf(trx, run)).filter(
    ({ state, instance }) =>
      state === 'pending' && (run.instance === undefined || run.instance === instance),
  );
  const { tenant, runId } = run;
  for (const approval of pending) {
    const { approval_id, kind, instance, call_id: callId } = approval;
    await saveApproval(trx, approval, { state: 'withdrawn', decided_at: at });
    await saveDecision(trx, { tenant, runId, instance, callId }, { settled: true });
    await appendAudit(
      trx,
      {
        tenant,
        runId,
        kind: 'approval',
        instance,
        callId,
        facts: { approval_id, asked: kind, state: 'withdrawn' },
      },
      at,
    );
  }
  return pending.length;
}

/** Filter and position of a page of approvals. */
export interface ApprovalFilter {
  readonly tenant: string;
  /** Empty = all. */
  readonly states: readonly ApprovalRow['state'][];
  /** Empty = any. */
  readonly runId: string;
  readonly agentName: string;
  readonly tool: string;
  /** The last row of the previous page. */
  readonly after: { readonly createdAt: Date; readonly approvalId: string } | undefined;
  readonly limit: number;
}

/** The approvals of a page, newest first. */
export async function selectApprovals(
  db: SupervisorReader,
  filter: ApprovalFilter,
): Promise<ApprovalRow[]> {
  const { tenant, states, runId, agentName, tool, after, limit } = filter;
  let query = db.selectFrom('approvals').selectAll().where('tenant', '=', tenant);
  if (states.length > 0) query = query.where('state', 'in', states);
  if (runId !== '') query = query.where('run_id', '=', runId);
  if (agentName !== '') query = query.where('agent_name', '=', agentName);
  if (tool !== '') query = query.where('tool', '=', tool);
  if (after !== undefined) {
    query = query.where((row) =>
      row.or([
        row('created_at', '<', after.createdAt),
        row.and([
          row('created_at', '=', after.createdAt),
          row('approval_id', '<', after.approvalId),
        ]),
      ]),
    );
  }
  return await query
    .orderBy('created_at', 'desc')
    .orderBy('approval_id', 'desc')
    .limit(limit)
    .execute();
}

/** The approvals of a tenant, or of one of its runs, that are pending or were closed since `since`, oldest first. */
export async function openOrClosedSince(
  db: SupervisorReader,
  tenant: string,
  runId: string,
  since: Date,
): Promise<ApprovalRow[]> {
  const values = { tenant, runId, since };
  const { rows } = await (runId === '' ? selectOpenOfTenant : selectOpenOfRun)(db, values);
  // Sorted here, because with ORDER BY the database would read all approvals of the tenant in the order of their
  // creation.
  return rows.toSorted(
    (a, b) =>
      a.created_at.getTime() - b.created_at.getTime() || (a.approval_id < b.approval_id ? -1 : 1),
  );
}

/** Parameters of {@link openApprovals}. */
export interface OpenApprovals {
  readonly tenant: string;
  readonly runId: string;
  readonly since: Date;
}

/** Prepared, because every watch runs the query repeatedly (BD-2). */
const selectOpenOfTenant = prepareQuery((db: SupervisorReader, values: OpenApprovals) =>
  openApprovals(db, values, 'tenant'),
);
const selectOpenOfRun = prepareQuery((db: SupervisorReader, values: OpenApprovals) =>
  openApprovals(db, values, 'run'),
);

/**
 * Returns the query for approvals that are pending or were closed since `since`. It is a union of two queries with one
 * index each, so that it does not read approvals that were closed earlier. The state is a literal, because a parameter
 * would not match the partial index.
 */
export function openApprovals(
  db: SupervisorReader,
  { tenant, runId, since }: OpenApprovals,
  of: 'tenant' | 'run',
) {
  const all = db.selectFrom('approvals').selectAll().where('tenant', '=', tenant);
  const inScope = of === 'run' ? all.where('run_id', '=', runId) : all;
  return inScope
    .where('state', '=', sql.lit('pending'))
    .unionAll(inScope.where('decided_at', '>=', since));
}

/** Exports the number of pending approvals by tenant as a metric. */
export function observeApprovals({ metrics }: Telemetry, { db }: SupervisorStore): void {
  metrics.observe('approvalsOpen', async () => {
    const rows = await db
      .selectFrom('approvals')
      // A literal, because a parameter would not match the partial index.
      .where('state', '=', sql.lit('pending'))
      .groupBy('tenant')
      .select((query) => ['tenant', query.fn.countAll().as('count')])
      .execute();
    // Tenants without pending approvals report 0; every tenant that has started a run has a chain.
    const tenants = await db.selectFrom('audit_chains').select('tenant').execute();
    const open = new Map(tenants.map(({ tenant }) => [tenant, 0]));
    for (const { tenant, count } of rows) open.set(tenant, Number(count));
    if (open.size === 0) return [{ value: 0 }];
    return [...open].map(([tenant, value]) => ({ value, labels: { 'writ.tenant': tenant } }));
  });
}
