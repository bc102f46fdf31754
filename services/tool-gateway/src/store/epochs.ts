import type { AgentKey } from '@writ/kernel';
import { prepareQuery, prepareWrite } from '@writ/store';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** The highest lease epoch seen for an agent; undefined before the first (RT-2). */
export async function seenEpoch(db: GatewayReader, agent: AgentKey): Promise<bigint | undefined> {
  const { rows } = await selectEpoch(db, agent);
  return rows[0]?.epoch;
}

const selectEpoch = prepareQuery((db: GatewayReader, agent: AgentKey) =>
  db
    .selectFrom('epochs')
    .select('epoch')
    .where('tenant', '=', agent.tenant)
    .where('run_id', '=', agent.runId)
    .where('agent_instance', '=', agent.instance),
);

/** Stores the highest epoch of an agent. */
export async function storeEpoch(
  trx: GatewayTransaction,
  { tenant, runId, instance }: AgentKey,
  epoch: bigint,
): Promise<void> {
  await upsertEpoch(trx, { tenant, runId, instance, epoch });
}

const upsertEpoch = prepareWrite((db: GatewayReader, row: AgentKey & { readonly epoch: bigint }) =>
  db
    .insertInto('epochs')
    .values({
      tenant: row.tenant,
      run_id: row.runId,
      agent_instance: row.instance,
      epoch: row.epoch,
    })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'run_id', 'agent_instance']).doUpdateSet({ epoch: row.epoch }),
    ),
);
