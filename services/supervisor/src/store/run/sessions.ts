import { PermissionDeniedError } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** A session, and the caller who starts a run in it. */
interface Session {
  readonly tenant: string;
  readonly sessionId: string;
  readonly createdBy: string;
}

/**
 * Records the caller as the creator of a new session, and rejects a session that another caller created (SUP-2).
 * @throws PermissionDeniedError SESSION_WRONG_OWNER
 */
export async function claimSession(
  trx: SupervisorTransaction,
  session: Session,
  at: Date,
): Promise<void> {
  const { numAffectedRows = 0n } = await insertSession(trx, { ...session, at });
  if (numAffectedRows > 0n) return;
  const [owner] = (await selectOwner(trx, session)).rows;
  if (owner?.created_by === session.createdBy) return;
  throw new PermissionDeniedError(
    'SESSION_WRONG_OWNER',
    `session_id ${session.sessionId} belongs to another caller.`,
    { field: 'session_id' },
  );
}

const insertSession = prepareQuery(
  (db: SupervisorReader, session: Session & { readonly at: Date }) =>
    db
      .insertInto('sessions')
      .values({
        tenant: session.tenant,
        session_id: session.sessionId,
        created_by: session.createdBy,
        created_at: session.at,
      })
      .onConflict((conflict) => conflict.columns(['tenant', 'session_id']).doNothing()),
);

const selectOwner = prepareQuery((db: SupervisorReader, session: Session) =>
  db
    .selectFrom('sessions')
    .select('created_by')
    .where('tenant', '=', session.tenant)
    .where('session_id', '=', session.sessionId),
);
