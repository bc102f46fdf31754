import type { RunKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { EffectRecord } from '../../domain/result/effects.ts';
import type { SupervisorReader } from '../supervisor-store.ts';

/** The actions with an effect of all agents of a run, each with the receipt of the highest revision (SV-7). */
export async function effectsOf(db: SupervisorReader, run: RunKey): Promise<EffectRecord[]> {
  const latest = new Map((await selectEffects(db, run)).rows.map((row) => [row.decision_id, row]));
  return [...latest.values()].map((row) => ({
    // Only tool calls have the digest of a definition.
    isTool: row.definition_digest !== null,
    isApproved: row.executed_action !== null,
    stopReason: row.stop_reason ?? undefined,
    status: row.status ?? undefined,
    outcome: row.outcome ?? undefined,
  }));
}

const selectEffects = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('decisions')
    .leftJoin('receipts', (join) =>
      join
        .onRef('receipts.tenant', '=', 'decisions.tenant')
        .onRef('receipts.run_id', '=', 'decisions.run_id')
        .onRef('receipts.instance', '=', 'decisions.instance')
        .onRef('receipts.call_id', '=', 'decisions.call_id'),
    )
    .select([
      'decisions.decision_id',
      'decisions.definition_digest',
      'decisions.executed_action',
      'decisions.stop_reason',
      'receipts.status',
      'receipts.outcome',
    ])
    .where('decisions.tenant', '=', tenant)
    .where('decisions.run_id', '=', runId)
    .where('decisions.has_effect', '=', true)
    .orderBy('receipts.revision'),
);
