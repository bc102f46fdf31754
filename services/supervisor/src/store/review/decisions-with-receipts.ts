import type { CallKey, RunKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { EffectRecord } from '../../domain/result/count-effects.ts';
import type { SpawnRow } from '../agent/spawns.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import { callKeyOf } from './decisions.ts';

/**
 * The actions with an effect of all agents of a run, each with its agent, and its spawn and child or the receipt of
 * the highest revision (SV-7).
 */
export async function effectsOf(db: SupervisorReader, run: RunKey): Promise<EffectRecord[]> {
  const latest = new Map((await selectEffects(db, run)).rows.map((row) => [row.decision_id, row]));
  return [...latest.values()].map((row) => ({
    // Among actions with an effect, only tool calls have a definition digest.
    isTool: row.definition_digest !== null,
    isApproved: row.executed_action !== null,
    stopReason: row.stop_reason ?? undefined,
    child: childFrom(row),
    hasEnded: row.ended_at !== null,
    status: row.status ?? undefined,
    outcome: row.outcome ?? undefined,
  }));
}

function childFrom({
  spawn_state: state,
  child_epoch: epoch,
}: {
  readonly spawn_state: SpawnRow['state'] | null;
  readonly child_epoch: bigint | null;
}): EffectRecord['child'] {
  if (state === 'refused' || state === 'failed') return 'none';
  // The child may act before the supervisor records its delivery; the counts must not depend on the order of the two.
  const hasActed = epoch !== null && epoch > 0n;
  return state === 'ready' || hasActed ? 'made' : undefined;
}

const selectEffects = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  withAgents(db)
    .leftJoin('spawns', (join) =>
      join
        .onRef('spawns.tenant', '=', 'decisions.tenant')
        .onRef('spawns.run_id', '=', 'decisions.run_id')
        .onRef('spawns.parent_instance', '=', 'decisions.instance')
        .onRef('spawns.call_id', '=', 'decisions.call_id'),
    )
    .leftJoin('agents as child', (join) =>
      join
        .onRef('child.tenant', '=', 'spawns.tenant')
        .onRef('child.run_id', '=', 'spawns.run_id')
        .onRef('child.instance', '=', 'spawns.child_instance'),
    )
    .select([
      'decisions.decision_id',
      'decisions.definition_digest',
      'decisions.executed_action',
      'decisions.stop_reason',
      'spawns.state as spawn_state',
      'child.epoch as child_epoch',
      'agents.ended_at',
      'receipts.status',
      'receipts.outcome',
    ])
    .where('decisions.tenant', '=', tenant)
    .where('decisions.run_id', '=', runId)
    .where('decisions.has_effect', '=', true)
    .orderBy('receipts.revision'),
);

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
  return await withAgents(db)
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

/** The approved tool calls of a run without a receipt; VoidWrit settles them before the run ends (TG-8, SV-7). */
export async function writsWithoutReceipt(db: SupervisorReader, run: RunKey): Promise<CallKey[]> {
  return (await selectUnsettled(db, run)).rows.map(callKeyOf);
}

const selectUnsettled = prepareQuery((db: SupervisorReader, run: RunKey) =>
  withReceipts(db)
    .select(['decisions.tenant', 'decisions.run_id', 'decisions.instance', 'decisions.call_id'])
    .where('decisions.tenant', '=', run.tenant)
    .where('decisions.run_id', '=', run.runId)
    .where('decisions.args_sha256', 'is not', null)
    .where('receipts.receipt_id', 'is', null)
    .orderBy('decisions.sequence'),
);

/** The decisions, each with its agent and every receipt of its call. */
function withAgents(db: SupervisorReader) {
  return withReceipts(db).innerJoin('agents', (join) =>
    join
      .onRef('agents.tenant', '=', 'decisions.tenant')
      .onRef('agents.run_id', '=', 'decisions.run_id')
      .onRef('agents.instance', '=', 'decisions.instance'),
  );
}

/** The decisions, each with every receipt of its call. */
function withReceipts(db: SupervisorReader) {
  return db
    .selectFrom('decisions')
    .leftJoin('receipts', (join) =>
      join
        .onRef('receipts.tenant', '=', 'decisions.tenant')
        .onRef('receipts.run_id', '=', 'decisions.run_id')
        .onRef('receipts.instance', '=', 'decisions.instance')
        .onRef('receipts.call_id', '=', 'decisions.call_id'),
    );
}
