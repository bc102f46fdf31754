import { derivedId } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import type { WakeAgentPayload } from '../../domain/order/order-payloads.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { wakeAgent } from '../../store/agent/suspension.ts';
import type { OrderHandler } from '../order/order-handler.ts';
import { readCurrentDecision } from '../review/current-decision.ts';
import { credentialsFor } from './credentials.ts';

/**
 * Sends the decision and new tokens to a suspended agent. Skips an agent that has ended, unless it is a child that this
 * decision ended: only this signal informs its worker, which then replies to the parent (AG-3). If the worker does not
 * know the agent, the order is retried until the reconciler ends the agent (BD-3), or, for such a child, until the run
 * ends; the parent then continues after its ask timeout.
 */
export function wakeAgentOrder(context: SupervisorContext): OrderHandler {
  const { peers, store } = context;
  return {
    steps: {
      async signal({ order, run }) {
        const { instance, callId } = JSON.parse(order.payload) as WakeAgentPayload;
        const key = { tenant: run.tenant, runId: run.run_id, instance };
        const agent = await loadAgent(store.db, key);
        const isAnswer = agent.parent_instance !== null && agent.ending_call_id === callId;
        const isNeeded = agent.ended_at === null || (isAnswer && run.ended_at === null);
        if (!isNeeded) return { over: true };
        const isRepeat = order.attempts > 0;
        await peers.agentWorker.signal({
          ...key,
          requestId: derivedId('req', order.order_id, 'signal'),
          isExternal: isExternal(agent),
          name: `approval:${callId}`,
          approval: {
            decision: await readCurrentDecision(context, key, callId, { isRepeat }),
            credentials: await credentialsFor(context, run, agent),
          },
        });
        return { commit: (trx, at) => wakeAgent(trx, { ...key, callId }, at) };
      },
    },
  };
}
