import { canonicalDigest } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { rememberRequest, requestsOf } from '../../store/requests.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { type RunView, viewRun } from './read-runs.ts';

const METHOD = 'writ.run.v1.RunService/CancelRun';

/** One CancelRun request. */
export interface CancelRequest {
  readonly runId: string;
  readonly requestId: string;
  readonly reason: string;
}

/**
 * Ends a run with `cancelled`, unless its ending is already recorded; a repeated request changes nothing (SUP-8, RT-4).
 * @throws NotFoundError RUN_NOT_FOUND; InvalidRequestError REQUEST_ID_REUSED
 */
export async function cancelRun(
  context: SupervisorContext,
  { tenant, subject }: Person,
  { runId, requestId, reason }: CancelRequest,
): Promise<RunView> {
  const key = { tenant, runId };
  const digest = canonicalDigest({ runId, reason });
  const end = async ({ trx, at }: Tx): Promise<RunRow> => {
    const before = await loadRun(trx, key);
    const request = { tenant, subject, method: METHOD, requestId, digest };
    if (!(await rememberRequest(trx, request, at)) || before.ended_at !== null) return before;
    const ending = {
      ...key,
      instance: before.root_instance,
      stopReason: 'cancelled',
      order: { by: subject, reason },
    };
    await recordEnding(trx, ending, at);
    return await loadRun(trx, key);
  };
  const run = await transact(context, end, {
    run: key,
    resource: requestsOf({ tenant, subject }),
  });
  return await viewRun(context, run);
}
