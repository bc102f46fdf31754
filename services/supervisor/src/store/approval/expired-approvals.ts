import { sql } from 'kysely';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { ApprovalRow } from './approvals.ts';

/** An expired pending approval. */
export type DueApproval = Pick<ApprovalRow, 'tenant' | 'run_id' | 'approval_id'> & {
  readonly expires_at: Date | null;
};

/**
 * Expired pending approvals of all tenants, at most `limit`, the longest expired first, after the row `after`.
 * Approvals of halted agents are excluded, because they do not expire during a halt (SV-9).
 */
export async function expiredApprovals(
  db: SupervisorReader,
  now: Date,
  limit: number,
  after?: DueApproval,
): Promise<DueApproval[]> {
  let query = db
    .selectFrom('approvals')
    .select(['tenant', 'run_id', 'approval_id', 'expires_at'])
    .where('state', '=', sql.lit('pending'))
    .where('expires_at', '<=', now)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('halts')
            .select('halts.halt_id')
            .where('halts.lifted_at', 'is', null)
            .where(({ or, eb, ref }) =>
              or([
                eb('halts.tenant', 'is', null),
                eb('halts.tenant', '=', ref('approvals.tenant')),
              ]),
            )
            .where(({ or, eb, ref }) =>
              or([
                eb('halts.run_id', 'is', null),
                eb('halts.run_id', '=', ref('approvals.run_id')),
              ]),
            )
            .where(({ or, eb, ref }) =>
              or([
                eb('halts.instance', 'is', null),
                eb('halts.instance', '=', ref('approvals.instance')),
              ]),
            ),
        ),
      ),
    );
  if (after?.expires_at) {
    const { expires_at: last, approval_id: id } = after;
    query = query.where(({ or, and, eb }) =>
      or([
        eb('expires_at', '>', last),
        and([eb('expires_at', '=', last), eb('approval_id', '>', id)]),
      ]),
    );
  }
  return await query.orderBy('expires_at').orderBy('approval_id').limit(limit).execute();
}
