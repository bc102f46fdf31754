import { derivedId, HistoryRetention } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { reasonOf } from '../../domain/order/order-rules.ts';
import { agentsOf, saveAgent } from '../../store/agent/agents.ts';
import { approvalsOf } from '../../store/approval/approvals.ts';
import { writsWithoutReceipt } from '../../store/review/decisions-with-receipts.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';
import { type DrivenOrder, ignoreNotFound, type StepDone } from '../order/order-handler.ts';
import { recordLastEvents } from '../timeline/carried-events.ts';
import { finishRun, runKeyOf } from './finish-run.ts';
import { rootKeyOf } from './start-run-order.ts';

/** Result of the step for a run that is not ordinary; the following steps of the order then end the run. */
const NOT_ORDINARY: StepDone = { unchanged: true };

/**
 * Ends a run that has nothing left to stop, without freeze and cancellation (CO-1, AG-7). Its only agent has succeeded,
 * and the worker confirms that the agent has ended. Every writ has a receipt, so the gateway executes nothing further
 * and only returns recorded outcomes. The tab is closed at the same time if no call holds budget, and the meter then
 * accepts no further call. After a crash the step is repeated. A tab that was closed stays closed, even if the repeated
 * step or the worker finds that the run is not ordinary.
 */
export async function endOrdinaryRun(
  context: SupervisorContext,
  { order, run }: DrivenOrder,
): Promise<StepDone> {
  const { peers, store, telemetry } = context;
  const root = rootKeyOf(run);
  const idOf = (call: string) => derivedId('req', order.order_id, call);
  if (!(await isOrdinary(store.db, run))) return NOT_ORDINARY;
  const [carried, last] = await Promise.all([
    peers.agentWorker.awaitEnd(idOf('await_end'), root, 'success'),
    ignoreNotFound(peers.executionMeter.closeSettledTab(idOf('close_settled_tab'), root)),
  ]);
  if (carried === undefined || last === undefined) return NOT_ORDINARY;
  // The result does not wait for this call: after the end of the run, its pool has no effect, and the reconciler closes
  // a pool that is still open (BD-3).
  peers.spawnBudget.closePool(idOf('close_pool'), root, true).catch((error: unknown) => {
    telemetry.log.info(
      { tenant: run.tenant, run_id: run.run_id, reason: reasonOf(error) },
      'pool not closed yet',
    );
  });
  return {
    over: true,
    async commit(trx, at) {
      if ((await loadRun(trx, root)).ended_at !== null) return;
      const tx = { trx, at, context };
      await recordLastEvents(tx, runKeyOf(run), { carried, metered: last.events });
      await saveAgent(trx, root, { tab: JSON.stringify(last.tab) });
      await finishRun(tx, run, order);
    },
  };
}

/**
 * Whether a run succeeded with one agent, has no pending approval, has a receipt for every writ, and is retained
 * permanently. Once the ending of the root is recorded, conditions that hold continue to hold, because an ended agent
 * gets no decisions.
 */
async function isOrdinary(db: SupervisorReader, run: RunRow): Promise<boolean> {
  const key = runKeyOf(run);
  const [[root, ...others], writs, approvals] = await Promise.all([
    agentsOf(db, key),
    writsWithoutReceipt(db, key),
    approvalsOf(db, key),
  ]);
  if (root?.ending_stop_reason !== 'success' || others.length > 0) return false;
  const isKept = [run, root].every(({ retention }) => retention === HistoryRetention.PERMANENT);
  return isKept && writs.length === 0 && approvals.every(({ state }) => state !== 'pending');
}
