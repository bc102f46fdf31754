import { InvalidRequestError } from '@writ/kernel';
import type { SupervisorReader, SupervisorTransaction } from './supervisor-store.ts';

/** A mutating request of a person, for idempotency. */
export interface PersonalRequest {
  readonly tenant: string;
  readonly subject: string;
  /**
   * Full name of the RPC. SetCaps has a second row with the suffix `/enforced` after the meter has confirmed the caps.
   * For a run that a lifted halt resumed, the method is `resume`, `subject` is the id of the halt, and `request_id` is
   * the id of the run.
   */
  readonly method: string;
  readonly requestId: string;
  /** Digest of the whole request. */
  readonly digest: string;
}

/** Returns the `resource` option that a transaction needs to record a request of a person. */
export function requestsOf({ tenant, subject }: Pick<PersonalRequest, 'tenant' | 'subject'>) {
  return `requests:${JSON.stringify([tenant, subject])}`;
}

/**
 * Returns whether a request is recorded. Call it before an effect outside the database that the transaction with
 * `rememberRequest` cannot roll back.
 * @throws InvalidRequestError REQUEST_ID_REUSED when the id was used for a different request
 */
export async function isRecorded(
  db: SupervisorReader,
  { tenant, subject, method, requestId, digest }: PersonalRequest,
): Promise<boolean> {
  const known = await db
    .selectFrom('requests')
    .select('digest')
    .where('tenant', '=', tenant)
    .where('subject', '=', subject)
    .where('method', '=', method)
    .where('request_id', '=', requestId)
    .executeTakeFirst();
  if (known === undefined) return false;
  if (known.digest === digest) return true;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was already used for a different request; use a new request_id.`,
    { field: 'request_id' },
  );
}

/**
 * Records a request whose request_id is not stored in another table. Returns false for a repeated request.
 * @throws InvalidRequestError REQUEST_ID_REUSED when the id was used for a different request
 */
export async function rememberRequest(
  trx: SupervisorTransaction,
  request: PersonalRequest,
  at: Date,
): Promise<boolean> {
  if (await isRecorded(trx, request)) return false;
  const { tenant, subject, method, requestId, digest } = request;
  await trx
    .insertInto('requests')
    .values({ tenant, subject, method, request_id: requestId, digest, recorded_at: at })
    .execute();
  return true;
}

/** Records the id of an audited refusal; returns false when it was recorded before (TG-1). */
export async function rememberRefusal(
  trx: SupervisorTransaction,
  tenant: string,
  refusalId: string,
  at: Date,
): Promise<boolean> {
  const inserted = await trx
    .insertInto('refusals')
    .values({ tenant, refusal_id: refusalId, recorded_at: at })
    .onConflict((conflict) => conflict.columns(['tenant', 'refusal_id']).doNothing())
    .executeTakeFirst();
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
}
