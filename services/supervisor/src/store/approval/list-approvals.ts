import type { SupervisorReader } from '../supervisor-store.ts';
import type { ApprovalRow } from './approvals.ts';

/** Which approvals of a tenant are wanted, and from where on. */
export interface ApprovalFilter {
  readonly tenant: string;
  /** Empty = all. */
  readonly states: readonly ApprovalRow['state'][];
  /** Empty = any. */
  readonly runId: string;
  readonly agentName: string;
  readonly tool: string;
  /** The row after which the page begins. */
  readonly after: { readonly createdAt: Date; readonly approvalId: string } | undefined;
  readonly limit: number;
}

/** The approvals that a filter lets through, newest first. */
export async function listApprovals(
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

/** The approvals of a tenant, or of one of its runs, that are pending or closed since a moment. */
export async function openOrClosedSince(
  db: SupervisorReader,
  tenant: string,
  runId: string,
  since: Date,
): Promise<ApprovalRow[]> {
  let query = db
    .selectFrom('approvals')
    .selectAll()
    .where('tenant', '=', tenant)
    .where((row) => row.or([row('state', '=', 'pending'), row('decided_at', '>=', since)]));
  if (runId !== '') query = query.where('run_id', '=', runId);
  return await query.orderBy('created_at').orderBy('approval_id').execute();
}
