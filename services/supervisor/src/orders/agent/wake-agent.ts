import { derivedId } from '@writ/kernel';
import { credentialsFor } from '../../rpc/messages/credentials.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { wakeAgent } from '../../store/agent/suspension.ts';
import type { OrderContext, OrderHandler } from '../order-kind.ts';

/** Payload of an order that wakes an agent after its approval was decided. */
export interface WakeAgentPayload {
  readonly instance: string;
  readonly callId: string;
}

/** Tells a waiting agent what was decided, with fresh tokens. One that has ended is left alone. */
export function wakeAgentOrder(context: OrderContext): OrderHandler {
  const { peers, review, store } = context;
  return {
    steps: {
      async signal({ order, run }) {
        const { instance, callId } = JSON.parse(order.payload) as WakeAgentPayload;
        const key = { tenant: run.tenant, runId: run.run_id, instance };
        const agent = await loadAgent(store.db, key);
        if (agent.ended_at !== null) return { over: true };
        await peers.agentWorker.signal({
          ...key,
          requestId: derivedId('req', order.order_id, 'signal'),
          name: `approval:${callId}`,
          approval: {
            decision: await review.decisionNow(key, callId),
            credentials: await credentialsFor(context, run, agent),
          },
        });
        return { commit: (trx, at) => wakeAgent(trx, key, at) };
      },
    },
  };
}
