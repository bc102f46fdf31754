import { canonicalDigest } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { rememberRequest, requestsOf } from '../../store/requests.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { loadExternalRun } from './issue-run-token.ts';
import { type RunView, viewRun } from './read-runs.ts';

const METHOD = 'writ.run.v1.RunService/CloseRun';

/**
 * Ends the run of an external agent with `closed`, unless its ending is already recorded; a repeated request changes
 * nothing (AP-1, RT-4).
 * @throws NotFoundError RUN_NOT_FOUND; PreconditionError RUN_NOT_EXTERNAL; InvalidRequestError REQUEST_ID_REUSED
 */
export async function closeRun(
  context: SupervisorContext,
  { tenant, subject }: Person,
  { runId, requestId }: { readonly runId: string; readonly requestId: string },
): Promise<RunView> {
  const key = { tenant, runId };
  const digest = canonicalDigest({ runId });
  const end = async ({ trx, at }: Tx): Promise<RunRow> => {
    const before = await loadExternalRun(trx, key);
    const request = { tenant, subject, method: METHOD, requestId, digest };
    if (!(await rememberRequest(trx, request, at)) || before.ended_at !== null) return before;
    const order = { by: subject, reason: '' };
    await recordEnding(
      trx,
      { ...key, instance: before.root_instance, stopReason: 'closed', order },
      at,
    );
    return await loadRun(trx, key);
  };
  const run = await transact(context, end, {
    run: key,
    resource: requestsOf({ tenant, subject }),
  });
  return await viewRun(context, run);
}
