import type { FreezeSubject } from '@writ/freeze';
import { int64, prepareQuery } from '@writ/store';
import { sql } from 'kysely';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** The highest lease epoch seen for an agent; undefined before the first (RT-2). */
export async function seenEpoch(
  db: GatewayReader,
  agent: FreezeSubject,
): Promise<bigint | undefined> {
  const { rows } = await selectEpoch(db, agent);
  return rows[0]?.epoch;
}

const selectEpoch = prepareQuery((db: GatewayReader, agent: FreezeSubject) =>
  db
    .selectFrom('epochs')
    .select('epoch')
    .where('tenant', '=', agent.tenant)
    .where('run_id', '=', agent.runId)
    .where('agent_instance', '=', agent.agentInstance),
);

/** Stores an epoch unless a higher one was seen, in one statement; returns the highest (RT-2). */
export async function raiseEpoch(
  trx: GatewayTransaction,
  { tenant, runId, agentInstance }: FreezeSubject,
  epoch: bigint,
): Promise<bigint> {
  const { rows } = await upsertEpoch(trx, { tenant, runId, agentInstance, epoch });
  return int64(rows[0]?.epoch);
}

const upsertEpoch = prepareQuery(
  (db: GatewayReader, row: FreezeSubject & { readonly epoch: bigint }) =>
    db
      .insertInto('epochs')
      .values({
        tenant: row.tenant,
        run_id: row.runId,
        agent_instance: row.agentInstance,
        epoch: row.epoch,
      })
      .onConflict((conflict) =>
        conflict.columns(['tenant', 'run_id', 'agent_instance']).doUpdateSet({
          epoch: sql<bigint>`case when epochs.epoch > excluded.epoch then epochs.epoch else excluded.epoch end`,
        }),
      )
      .returning('epoch'),
);
