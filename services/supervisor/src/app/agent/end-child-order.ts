import { type AgentKey, derivedId } from '@writ/kernel';
import type { SupervisorContext, Tx } from '../../context.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import type { ChildOrderPayload } from '../../domain/order/order-payloads.ts';
import type { ClosedTab } from '../../domain/result/closed-tab.ts';
import { type AgentRow, findAgent, loadAgent, saveAgent } from '../../store/agent/agents.ts';
import { noteSlotChange } from '../../store/agent/pauses.ts';
import { failSpawn, saveSpawn } from '../../store/agent/spawns.ts';
import type { RunRow } from '../../store/run/runs.ts';
import { agentRefOf } from '../../wire/supervision.ts';
import type { DrivenOrder, OrderHandler, StepDone } from '../order/order-handler.ts';
import { ignoreNotFound } from '../order/order-handler.ts';
import { recordLastEvents } from '../timeline/carried-events.ts';
import { lastWorkerEvents } from '../timeline/last-worker-events.ts';

/**
 * Ends an agent below the root (SUP-8, AG-7): freezes it at the meter and the gateway, cancels it at the worker, closes
 * its tab and releases its slot. If the run is ending, the order skips its remaining steps, because the order that ends
 * the run does the same for all agents. The first steps only call peers and record no progress: a repeat after a crash
 * makes the same calls under the same ids (CO-1).
 */
export function endChildOrder(context: SupervisorContext): OrderHandler {
  const { peers, store, clock } = context;

  const whileRunLives =
    (step: (driven: DrivenOrder, key: AgentKey, child: AgentRow) => Promise<StepDone>) =>
    async (driven: DrivenOrder): Promise<StepDone> => {
      const { order, run } = driven;
      const { instance } = JSON.parse(order.payload) as ChildOrderPayload;
      const key = { tenant: run.tenant, runId: run.run_id, instance };
      const child = await findAgent(store.db, key);
      if (child !== undefined && run.ended_at === null && run.state !== 'ENDING') {
        return await step(driven, key, child);
      }
      return { over: true, commit: (trx) => saveSpawn(trx, key, { resumed: '[]' }) };
    };

  return {
    steps: {
      freeze: whileRunLives(async (_driven, key, { instance, ending_stop_reason: reason }) => {
        const order = {
          ...key,
          orderId: derivedId('frz', key.tenant, key.runId, instance, 'end'),
          reason: `Agent ${instance} has ended: ${reason}.`,
          at: clock.now(),
        };
        await Promise.all([peers.executionMeter.freeze(order), peers.toolGateway.freeze(order)]);
        return { unchanged: true };
      }),

      cancel: whileRunLives(async ({ order, memo }, key, child) => {
        const events = await ignoreNotFound(
          peers.agentWorker.cancelAgent({
            ...key,
            requestId: derivedId('req', order.order_id, 'cancel'),
            stopReason: child.ending_stop_reason ?? 'cancelled',
            isExternal: isExternal(child),
            recordedEvents: await lastWorkerEvents(store.db, key),
          }),
        );
        memo.events.push(...(events ?? []));
        return { unchanged: true };
      }),

      close_tab: whileRunLives(async ({ order, run, memo }, key) => {
        const id = derivedId('req', order.order_id, 'close_tab');
        const last = await ignoreNotFound(peers.executionMeter.closeTab(id, key));
        return {
          async commit(trx, at) {
            const events = { carried: memo.events, metered: last?.events ?? [] };
            await recordLastEvents({ trx, at, context }, key, events);
            if (last !== undefined) await closeAgent({ trx, at, context }, run, key, last.tab);
          },
        };
      }),

      release: whileRunLives(async ({ order }, key) => {
        // The time is read before the call, so that a later pause of a resumed agent cannot have an earlier time than
        // the resumption.
        const at = clock.now();
        const id = derivedId('req', order.order_id, 'release');
        const resumed = (await ignoreNotFound(peers.spawnBudget.release(id, key))) ?? [];
        return {
          async commit(trx, now) {
            for (const { instance } of resumed) {
              await noteSlotChange(trx, { ...key, instance }, { change: 'resumed', at }, now);
            }
            // Marks a spawn that has not finished as failed.
            await failSpawn(trx, key, 'RUN_ENDED');
            await saveSpawn(trx, key, { resumed: JSON.stringify(resumed) });
          },
        };
      }),
    },
  };
}

/** Stores the closed tab of an agent, and emits the end event if the agent is a child (HK-1). */
export async function closeAgent(
  { trx, at, context: { events } }: Tx,
  run: RunRow,
  key: AgentKey,
  tab: ClosedTab,
): Promise<void> {
  const agent = await loadAgent(trx, key);
  await saveAgent(trx, key, { tab: JSON.stringify(tab) });
  if (agent.tab !== null || agent.parent_instance === null) return;
  const end = { stopReason: agent.ending_stop_reason ?? 'cancelled', usage: tab.usage };
  await events.childEnded(trx, { run, agent: agentRefOf(agent) }, end, at);
}
