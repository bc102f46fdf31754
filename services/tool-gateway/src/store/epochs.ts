import type { FreezeSubject } from '@writ/freeze';
import { prepareQuery } from '@writ/store';
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

/** Stores the highest epoch of an agent. */
export async function storeEpoch(
  trx: GatewayTransaction,
  agent: FreezeSubject,
  epoch: bigint,
): Promise<void> {
  await trx
    .insertInto('epochs')
    .values({
      tenant: agent.tenant,
      run_id: agent.runId,
      agent_instance: agent.agentInstance,
      epoch,
    })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'run_id', 'agent_instance']).doUpdateSet({ epoch }),
    )
    .execute();
}
