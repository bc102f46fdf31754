import { type AgentKey, scopesOver } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { Halt } from '../../domain/halt/halt.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import { haltOf } from './halts.ts';

/**
 * Returns the oldest halt that covers an agent and is not completely lifted: the halt is in force, or the runs in its
 * scope are still being resumed; undefined if there is none. Until the halt is completely lifted, the approvals of the
 * agent do not expire, because they may still have to be extended (SV-5, SV-9).
 */
export async function unresumedHalt(
  db: SupervisorReader,
  key: AgentKey,
): Promise<Halt | undefined> {
  const [everything, tenant, run, agent] = scopesOver(key);
  const [row] = (await selectUnresumed(db, { everything, tenant, run, agent })).rows;
  return row && haltOf(row);
}

const selectUnresumed = prepareQuery(
  (
    db: SupervisorReader,
    scopes: Readonly<Record<'everything' | 'tenant' | 'run' | 'agent', string>>,
  ) =>
    db
      .selectFrom('halts')
      .selectAll()
      .where('scope', 'in', [scopes.everything, scopes.tenant, scopes.run, scopes.agent])
      .where('state', '!=', 'lifted')
      .orderBy('ordered_at')
      .orderBy('halt_id')
      .limit(1),
);

/** The other halts that were in force when a halt was lifted. */
export async function haltsInForceAtLift(
  db: SupervisorReader,
  { haltId, liftedAt }: { readonly haltId: string; readonly liftedAt: Date },
): Promise<readonly Halt[]> {
  const rows = await db
    .selectFrom('halts')
    .selectAll()
    .where('halt_id', '!=', haltId)
    .where('ordered_at', '<=', liftedAt)
    .where((row) => row.or([row('lifted_at', 'is', null), row('lifted_at', '>', liftedAt)]))
    .execute();
  return rows.map(haltOf);
}
