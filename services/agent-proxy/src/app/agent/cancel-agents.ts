import type { RunKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { agentsOf, cancelsOf, insertCancel, keyOf, saveAgent } from '../../store/agents.ts';
import { deleteCalls } from '../../store/calls.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';

/** An order to end agents. */
export interface CancelOrder extends RunKey {
  readonly requestId: string;
  /** Empty for all agents of the run. */
  readonly instance: string;
  readonly stopReason: string;
}

/**
 * Ends external agents (SUP-8, AP-1): deletes their tokens, rejects their further requests on every replica, and aborts
 * their requests in progress in this process. A request on another replica ends when its next call to a service is
 * rejected or, while it waits for a person, at its next poll. Returns the number of ended agents; a repeated order
 * changes nothing.
 */
export async function cancelAgents(
  { store, clock, open, slots, receipts, disconnectTimes, toolLists }: ProxyContext,
  { requestId, instance, stopReason, ...run }: CancelOrder,
): Promise<number> {
  const at = clock.now();
  const end = async (trx: ProxyTransaction) => {
    const known = (await cancelsOf(trx, run)).find(({ request_id: id }) => id === requestId);
    if (known !== undefined) return { ended: known.ended, agents: [] };
    const concerned = (await agentsOf(trx, run)).filter(
      (agent) => agent.ended_at === null && (instance === '' || agent.instance === instance),
    );
    for (const agent of concerned) {
      const changes = { credentials: null, stop_reason: stopReason, ended_at: at };
      await saveAgent(trx, keyOf(agent), changes);
    }
    const { tenant, runId: run_id } = run;
    await insertCancel(trx, {
      tenant,
      run_id,
      request_id: requestId,
      instance,
      stop_reason: stopReason,
      ended: concerned.length,
      cancelled_at: at,
    });
    if (instance === '') await deleteCalls(trx, run);
    return { ended: concerned.length, agents: concerned.map(keyOf) };
  };
  const { ended, agents } = await store.transaction(end, { run });
  for (const agent of agents) {
    open.abort(agent, stopReason);
    slots.forget(agent);
    receipts.forget(agent);
    disconnectTimes.forget(agent);
    toolLists.forget(agent);
  }
  return ended;
}
