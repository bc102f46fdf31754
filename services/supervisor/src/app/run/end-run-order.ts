import { derivedId, HistoryRetention, UnavailableError } from '@writ/kernel';
import type { SupervisorContext, Tx } from '../../context.ts';
import { isExternal, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import type { ClosedTab } from '../../domain/result/closed-tab.ts';
import { type AgentRow, agentsOf, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { withdrawApprovals } from '../../store/approval/approvals.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { closeAgent } from '../agent/end-child-order.ts';
import type { DrivenOrder, OrderHandler } from '../order/order-handler.ts';
import { ignoreNotFound } from '../order/order-handler.ts';
import { settleWrits } from '../review/settle-writs.ts';
import { recordLastEvents } from '../timeline/carried-events.ts';
import { lastWorkerEvents } from '../timeline/last-worker-events.ts';
import { endOrdinaryRun } from './end-ordinary-run.ts';
import { finishRun, runKeyOf } from './finish-run.ts';
import { rootKeyOf } from './start-run-order.ts';

/** Maximum time for which calls in flight delay the end of a run that did not succeed, ms. */
const SETTLE_LIMIT_MS = 10_000;

/**
 * Ends a run after the ending of its root was recorded (SUP-8, AG-7). A run that has nothing left to stop ends in one
 * step. For other runs, the order freezes the run at the meter and the gateway, cancels it at the worker, settles
 * writs, closes the tabs and the pool, then records the terminal state with RUN_END. Steps that only call peers record
 * no progress: a repeat after a crash makes the same calls under the same ids (CO-1).
 */
export function endRunOrder(context: SupervisorContext): OrderHandler {
  const { peers, store, clock } = context;
  return {
    steps: {
      end: (driven) => endOrdinaryRun(context, driven),

      async freeze({ run }) {
        const { ending_stop_reason: reason } = await loadAgent(store.db, rootKeyOf(run));
        const order = {
          tenant: run.tenant,
          runId: run.run_id,
          orderId: derivedId('frz', run.tenant, run.run_id, 'end'),
          reason: `The run has ended: ${reason}.`,
          at: clock.now(),
          retention: run.retention,
        };
        await Promise.all([peers.executionMeter.freeze(order), peers.toolGateway.freeze(order)]);
        return { unchanged: true };
      },

      async cancel({ order, run, memo }) {
        const root = await loadAgent(store.db, rootKeyOf(run));
        const requestId = derivedId('req', order.order_id, 'cancel');
        // A run that failed to start is unknown to the worker.
        const events = await ignoreNotFound(
          peers.agentWorker.cancelRun({
            requestId,
            ...rootKeyOf(run),
            stopReason: root.ending_stop_reason ?? 'cancelled',
            retention: run.retention,
            isExternal: isExternal(root),
            answer: answerToPublish(root),
            recordedEvents: await lastWorkerEvents(store.db, runKeyOf(run)),
          }),
        );
        memo.events.push(...(events ?? []));
        return { unchanged: true };
      },

      async settle({ run }) {
        const root = await loadAgent(store.db, rootKeyOf(run));
        const inFlight = await settleWrits(context, rootKeyOf(run));
        if (inFlight > 0 && mustWait(root, clock.now())) {
          throw new UnavailableError(
            'CALLS_IN_FLIGHT',
            `${inFlight} tool calls of run ${run.run_id} are still in flight; retry.`,
            { run_id: run.run_id },
          );
        }
        return { unchanged: true };
      },

      async close_tabs({ order, run, memo }) {
        const agents = await agentsOf(store.db, rootKeyOf(run));
        await purgeShorterLived(context, run, agents);
        const closed: { readonly agent: AgentRow; readonly tab: ClosedTab }[] = [];
        const metered: Uint8Array[] = [];
        // Children first, so that the root's tab includes the usage of the whole run.
        for (const agent of agents.toReversed()) {
          const id = derivedId('req', order.order_id, 'close_tab', agent.instance);
          const last = await ignoreNotFound(peers.executionMeter.closeTab(id, keyOf(agent)));
          if (last === undefined) continue;
          closed.push({ agent, tab: last.tab });
          metered.push(...last.events);
        }
        return {
          async commit(trx, at) {
            const events = { carried: memo.events, metered };
            await recordLastEvents({ trx, at, context }, runKeyOf(run), events);
            for (const { agent, tab } of closed) {
              await closeAgent({ trx, at, context }, run, keyOf(agent), tab);
            }
          },
        };
      },

      async close_pool({ order, run }) {
        const id = derivedId('req', order.order_id, 'close_pool');
        await peers.spawnBudget.closePool(id, rootKeyOf(run));
        return { unchanged: true };
      },

      async finish(driven) {
        return { commit: (trx, at) => finish({ trx, at, context }, driven) };
      },
    },
  };
}

/**
 * Deletes the tool results of agents whose retention is shorter than that of their run (SUP-4), because the freeze of a
 * run with permanent retention keeps the results of all its agents. The meter needs no such call: the tab of each agent
 * contains its retention.
 */
async function purgeShorterLived(
  { peers, clock }: SupervisorContext,
  run: RunRow,
  agents: readonly AgentRow[],
): Promise<void> {
  if (run.retention !== HistoryRetention.PERMANENT) return;
  for (const agent of agents) {
    if (agent.retention === HistoryRetention.PERMANENT) continue;
    const { tenant, run_id: runId, instance, retention } = agent;
    await peers.toolGateway.freeze({
      tenant,
      runId,
      instance,
      orderId: derivedId('frz', tenant, runId, instance, 'purge'),
      reason: 'The run has ended.',
      at: clock.now(),
      retention,
    });
  }
}

/** The answer that the worker publishes to the output topic of the root (AG-5); empty when there is none. */
function answerToPublish({ manifest, ending_answer: answer }: AgentRow): string {
  return answer !== null && manifestFromJson(manifest).outputTopic !== '' ? answer : '';
}

/** A success is final only when no tool call is in flight; other endings wait for a limited time. */
function mustWait(root: AgentRow, now: Date): boolean {
  if (root.ending_stop_reason === 'success' || root.ended_at === null) return true;
  return now.getTime() - root.ended_at.getTime() < SETTLE_LIMIT_MS;
}

async function finish(tx: Tx, { order, run }: DrivenOrder): Promise<void> {
  const { trx, at } = tx;
  const key = rootKeyOf(run);
  if ((await loadRun(trx, key)).ended_at !== null) return;
  for (const agent of await agentsOf(trx, key)) {
    // Ends the agents that are still alive.
    if (agent.ended_at === null) {
      await recordEnding(trx, { ...keyOf(agent), stopReason: 'cancelled' }, at);
    }
  }
  await withdrawApprovals(trx, runKeyOf(run), at);
  await recordLastEvents(tx, runKeyOf(run), { carried: [], metered: [] });
  await finishRun(tx, run, order);
}
