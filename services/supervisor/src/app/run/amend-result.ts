import { derivedId } from '@writ/kernel';
import { rebuildResult } from '../../domain/result/build-result.ts';
import type { RunResult } from '../../domain/result/run-result.ts';
import { type RunRow, saveRun } from '../../store/run/runs.ts';
import { findSequence, replaceEntry } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { rootRefOf } from '../../wire/supervision.ts';
import { encodeResult } from '../../wire/timeline.ts';
import { readResultRecords } from './read-result-records.ts';

/**
 * Rebuilds the result of an ended run and its timeline entry after a late receipt or observation (SV-7, TG-8), or after
 * the content of some agents was deleted. Does nothing if the run is in progress or the content of the run was deleted
 * (SUP-4).
 */
export async function amendResult(trx: SupervisorTransaction, run: RunRow): Promise<void> {
  if (run.result === null || run.purged_at !== null) return;
  const key = { tenant: run.tenant, runId: run.run_id, instance: run.root_instance };
  const former = JSON.parse(run.result) as RunResult;
  const result = rebuildResult(await readResultRecords(trx, key), former);
  await saveRun(trx, key, { result: JSON.stringify(result) });
  const sequence = await findSequence(trx, { ...key, eventId: resultEventId(run.run_id) });
  if (sequence === undefined) return;
  await replaceEntry(trx, key, sequence, encodeResult(result, rootRefOf(run)));
}

/** The id of the timeline entry with the result of a run. */
export function resultEventId(runId: string): string {
  return derivedId('evt', runId, 'result');
}
