import type { RunKey } from '@writ/kernel';
import type { SupervisorReader } from '../supervisor-store.ts';

/**
 * The latest decisions of a run before a sequence, newest first, each with its agent and receipts; a call with several
 * receipts has several rows, the highest revision first. At most `limit` rows.
 */
export async function stepsBefore(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
  sequence: number,
  limit: number,
) {
  return await db
    .selectFrom('decisions')
    .innerJoin('agents', (join) =>
      join
        .onRef('agents.tenant', '=', 'decisions.tenant')
        .onRef('agents.run_id', '=', 'decisions.run_id')
        .onRef('agents.instance', '=', 'decisions.instance'),
    )
    .leftJoin('receipts', (join) =>
      join
        .onRef('receipts.tenant', '=', 'decisions.tenant')
        .onRef('receipts.run_id', '=', 'decisions.run_id')
        .onRef('receipts.instance', '=', 'decisions.instance')
        .onRef('receipts.call_id', '=', 'decisions.call_id'),
    )
    .select([
      'decisions.call_id',
      'decisions.instance',
      'decisions.step',
      'decisions.verdict',
      'decisions.reason',
      'decisions.stop_reason',
      'decisions.action',
      'decisions.executed_action',
      'agents.name',
      'receipts.outcome',
      'receipts.observation',
    ])
    .where('decisions.tenant', '=', tenant)
    .where('decisions.run_id', '=', runId)
    .where('decisions.sequence', '<', sequence)
    .orderBy('decisions.sequence', 'desc')
    .orderBy('receipts.revision', 'desc')
    .limit(limit)
    .execute();
}
