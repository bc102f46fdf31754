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

/** The run has something to stop: the next steps end it. */
const NOT_ORDINARY: StepDone = { unchanged: true };

/**
 * Ends a run that has nothing left to stop, without freeze and cancellation (CO-1, AG-7). Its only agent ends by
 * itself, which the worker confirms; every writ has a receipt, so that the gateway only repeats its outcomes; and the
 * tab closes meanwhile if no call holds budget, after which the meter begins none. A crash in between repeats the step;
 * what it has closed stays closed, also when the repeat, or the worker, finds the run not ordinary.
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
  // The result does not wait: a pool permits nothing after its run, and the reconciler closes an open one (BD-3).
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
 * Whether a run succeeded with one agent, has no pending approval and no writ without a receipt, and keeps its content.
 * None of this changes once the root has its ending, because an ended agent gets no decisions.
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
