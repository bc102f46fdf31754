import { type AgentKey, type CallKey, NotFoundError, type RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite, type RowOf } from '@writ/store';
import { decisions } from '../schema/review.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The row of a decision. */
export type DecisionRow = RowOf<typeof decisions>;

/** Inserts a decision. */
export async function insertDecision(
  trx: SupervisorTransaction,
  decision: DecisionRow,
): Promise<void> {
  await insertRow(trx, decision);
}

const insertRow = prepareWrite((db: SupervisorReader, row: DecisionRow) =>
  db.insertInto('decisions').values(pickColumns(row, decisions.columns)),
);

/** The decision on a proposal; undefined if there is none. */
export async function findDecision(
  db: SupervisorReader,
  key: CallKey,
): Promise<DecisionRow | undefined> {
  return (await selectDecision(db, key)).rows[0];
}

const selectDecision = prepareQuery((db: SupervisorReader, key: CallKey) =>
  db
    .selectFrom('decisions')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('call_id', '=', key.callId),
);

/**
 * Loads the decision on a proposal.
 * @throws NotFoundError DECISION_NOT_FOUND
 */
export async function loadDecision(db: SupervisorReader, key: CallKey): Promise<DecisionRow> {
  const row = await findDecision(db, key);
  if (row !== undefined) return row;
  throw new NotFoundError(
    'DECISION_NOT_FOUND',
    `Agent ${key.instance} has no decision with call_id ${key.callId}.`,
    { run_id: key.runId, agent: key.instance, call_id: key.callId },
  );
}

/** Updates columns of a decision. */
export async function saveDecision(
  trx: SupervisorTransaction,
  key: CallKey,
  changes: Partial<DecisionRow>,
): Promise<void> {
  await trx
    .updateTable('decisions')
    .set(changes)
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .execute();
}

/** The key of a row. */
export function callKeyOf(
  row: Pick<DecisionRow, 'tenant' | 'run_id' | 'instance' | 'call_id'>,
): CallKey {
  return {
    tenant: row.tenant,
    runId: row.run_id,
    instance: row.instance,
    callId: row.call_id,
  };
}

/** Whether an agent has already proposed its one composed final, which does not count as a step (SV-1). */
export async function hasComposed(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: AgentKey,
): Promise<boolean> {
  const row = await trx
    .selectFrom('decisions')
    .select('call_id')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('instance', '=', instance)
    .where('composed', '=', true)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The decisions of a run in order (SV-7). */
export async function decisionsOf(db: SupervisorReader, run: RunKey): Promise<DecisionRow[]> {
  return (await selectDecisions(db, run)).rows;
}

const selectDecisions = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('decisions')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('sequence'),
);
