import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { canonicalDigest } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { rememberRequest } from '../../store/requests.ts';
import { loadRun } from '../../store/run/runs.ts';
import { lastSequence } from '../../store/run/timeline.ts';
import { runMessage } from '../../wire/run.ts';

/**
 * CancelRun: ends a run with `cancelled`, unless it has an ending; the response shows the final state (SUP-8,
 * RT-4).
 */
export function cancelRun(context: SupervisorContext): Handler<typeof RunService.method.cancelRun> {
  return async (request, call) => {
    const { tenant, subject } = requirePerson(call);
    const { runId, requestId, reason } = request;
    const key = { tenant, runId };
    const run = await context.store.transaction(async (trx) => {
      const now = context.clock.now();
      const before = await loadRun(trx, key);
      const isNew = await rememberRequest(
        trx,
        {
          tenant,
          subject,
          method: 'writ.run.v1.RunService/CancelRun',
          requestId,
          digest: canonicalDigest({ runId, reason }),
        },
        now,
      );
      if (!isNew || before.ended_at !== null) return before;
      await recordEnding(
        trx,
        {
          ...key,
          instance: before.root_instance,
          stopReason: 'cancelled',
          order: { by: subject, reason },
        },
        now,
      );
      return await loadRun(trx, key);
    });
    return { run: runMessage(run, { lastSequence: await lastSequence(context.store.db, key) }) };
  };
}
