import { PermissionDeniedError } from '@writ/kernel';
import type { SupervisorTransaction } from '../supervisor-store.ts';

/**
 * Assigns a new session to its creator, and rejects the session of another creator (SUP-2).
 * @throws PermissionDeniedError SESSION_WRONG_OWNER
 */
export async function claimSession(
  trx: SupervisorTransaction,
  session: { readonly tenant: string; readonly sessionId: string; readonly createdBy: string },
  at: Date,
): Promise<void> {
  const { tenant, sessionId, createdBy } = session;
  await trx
    .insertInto('sessions')
    .values({ tenant, session_id: sessionId, created_by: createdBy, created_at: at })
    .onConflict((conflict) => conflict.columns(['tenant', 'session_id']).doNothing())
    .execute();
  const owner = await trx
    .selectFrom('sessions')
    .select('created_by')
    .where('tenant', '=', tenant)
    .where('session_id', '=', sessionId)
    .executeTakeFirstOrThrow();
  if (owner.created_by === createdBy) return;
  throw new PermissionDeniedError(
    'SESSION_WRONG_OWNER',
    `session_id ${sessionId} belongs to another caller.`,
    { field: 'session_id' },
  );
}
