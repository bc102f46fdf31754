import { prepareQuery, RowCache } from '@writ/store';
import { type AgentKey, agentText } from '../domain/agent-key.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';

/** Number of calls of a tab that ended without an answer for one reason. */
export interface FailureCount {
  readonly stopReason: string;
  readonly count: number;
  /** The most recent of these calls. */
  readonly lastCallId: string;
}

const cache = new RowCache<readonly FailureCount[]>();

/** Counts a call that ended without an answer. Idempotent for consecutive repeats of a call. */
export async function countFailure(
  trx: MeterTransaction,
  key: AgentKey,
  stopReason: string,
  callId: string,
): Promise<void> {
  await trx
    .insertInto('failures')
    .values({
      tenant: key.tenant,
      run_id: key.runId,
      agent_instance: key.agentInstance,
      stop_reason: stopReason,
      count: 1,
      last_call_id: callId,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id', 'agent_instance', 'stop_reason'])
        .doUpdateSet((column) => ({
          count: column('failures.count', '+', 1),
          last_call_id: callId,
        }))
        .where('failures.last_call_id', '!=', callId),
    )
    .execute();
  cache.delete(trx, agentText(key));
}

/** Returns the failures of a tab by stop reason. */
export async function failuresOf(db: MeterReader, key: AgentKey): Promise<readonly FailureCount[]> {
  const known = cache.get(db, agentText(key));
  if (known !== undefined) return known;
  const { rows } = await selectFailures(db, key);
  const failures = rows.map((row) => ({
    stopReason: row.stop_reason,
    count: row.count,
    lastCallId: row.last_call_id,
  }));
  cache.set(db, agentText(key), failures);
  return failures;
}

const selectFailures = prepareQuery((db: MeterReader, key: AgentKey) =>
  db
    .selectFrom('failures')
    .select(['stop_reason', 'count', 'last_call_id'])
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.agentInstance)
    .orderBy('stop_reason'),
);
