import { type AgentKey, agentKeyText, type CallKey } from '@writ/kernel';
import { prepareQuery, prepareWrite, RowCache } from '@writ/store';
import type { MeterReader, MeterTransaction } from './meter-store.ts';

/** Number of calls of a tab that failed or that a cap refused, for one stop reason; aborted calls are not counted. */
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
  const { tenant, runId, instance } = key;
  await addFailure(trx, { tenant, runId, instance, stopReason, callId });
  cache.delete(trx, agentKeyText(key));
}

const addFailure = prepareWrite((db: MeterReader, row: CallKey & { readonly stopReason: string }) =>
  db
    .insertInto('failures')
    .values({
      tenant: row.tenant,
      run_id: row.runId,
      agent_instance: row.instance,
      stop_reason: row.stopReason,
      count: 1,
      last_call_id: row.callId,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id', 'agent_instance', 'stop_reason'])
        .doUpdateSet((column) => ({
          count: column('failures.count', '+', 1),
          last_call_id: row.callId,
        }))
        .where('failures.last_call_id', '!=', row.callId),
    ),
);

/** Caches the empty list of failures of a new tab, and returns it. */
export function openFailures(trx: MeterTransaction, key: AgentKey): readonly FailureCount[] {
  const failures: readonly FailureCount[] = [];
  cache.set(trx, agentKeyText(key), failures);
  return failures;
}

/** Removes the failures of a closed tab from the cache. */
export function forgetFailures(trx: MeterTransaction, key: AgentKey): void {
  cache.delete(trx, agentKeyText(key));
}

/** Returns the failures of a tab by stop reason. */
export async function failuresOf(db: MeterReader, key: AgentKey): Promise<readonly FailureCount[]> {
  const known = cache.get(db, agentKeyText(key));
  if (known !== undefined) return known;
  const { rows } = await selectFailures(db, key);
  const failures = rows.map((row) => ({
    stopReason: row.stop_reason,
    count: row.count,
    lastCallId: row.last_call_id,
  }));
  cache.set(db, agentKeyText(key), failures);
  return failures;
}

const selectFailures = prepareQuery((db: MeterReader, key: AgentKey) =>
  db
    .selectFrom('failures')
    .select(['stop_reason', 'count', 'last_call_id'])
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.instance)
    .orderBy('stop_reason'),
);
