import { outcomeOf, type RunKey, sha256Hex } from '@writ/kernel';
import type { Tx } from '../../context.ts';
import type { EndRunPayload } from '../../domain/order/order-payloads.ts';
import { buildResult } from '../../domain/result/build-result.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { type RunRow, saveRun } from '../../store/run/runs.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import { rootRefOf } from '../../wire/supervision.ts';
import { encodeResult } from '../../wire/timeline.ts';
import { resultEventId } from './amend-result.ts';
import { readResultRecords } from './read-result-records.ts';
import { rootKeyOf } from './start-run-order.ts';

/** Records the terminal state of a run with its result, RUN_END and an audit record (RT-4, SV-7, SV-8). */
export async function finishRun(
  { trx, at, context }: Tx,
  run: RunRow,
  order: OrderRow,
): Promise<void> {
  const key = rootKeyOf(run);
  const result = buildResult(await readResultRecords(trx, key));
  const { stopReason } = result;
  await saveRun(trx, key, {
    state: outcomeOf(stopReason).state,
    usage: JSON.stringify(result.usage),
    result: JSON.stringify(result),
    changed_at: at,
    ended_at: at,
  });
  const agent = rootRefOf(run);
  await context.events.runEnded(trx, { run, agent }, { stopReason, usage: result.usage }, at);
  const entry = encodeResult(result, agent);
  await appendTimeline(trx, { ...key, eventId: resultEventId(run.run_id), entry }, at);
  const { by, reason } = JSON.parse(order.payload) as EndRunPayload;
  await appendAudit(
    trx,
    {
      ...key,
      kind: 'run_ended',
      facts: {
        stop_reason: stopReason,
        phase: result.phase,
        answer_sha256: result.answer === '' ? undefined : sha256Hex(result.answer),
        cost_nano_usd: result.usage.costNanoUsd,
        unverified: result.unverified,
        ordered_by: by,
        reason_sha256: reason ? sha256Hex(reason) : undefined,
      },
    },
    at,
  );
}

/** The key of a run. */
export function runKeyOf({ tenant, run_id: runId }: RunRow): RunKey {
  return { tenant, runId };
}
