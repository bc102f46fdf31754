import { admitEpoch } from '@writ/identity';
import type { AgentKey } from '@writ/kernel';
import { type CallContext, requireAgent } from '@writ/rpc';
import { type AgentRow, loadAgent, saveAgent } from '../../store/agent/agents.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** The agent of the verified token of a call. */
export function callingAgent(call: CallContext): AgentKey {
  const { tenant, runId, agent } = requireAgent(call);
  return { tenant, runId, instance: agent.instance };
}

/**
 * Loads the calling agent and checks the epoch of its lease (RT-2).
 * @throws PreconditionError STALE_EPOCH, NotFoundError AGENT_NOT_FOUND
 */
export async function admitAgent(trx: SupervisorTransaction, call: CallContext): Promise<AgentRow> {
  const key = callingAgent(call);
  const agent = await loadAgent(trx, key);
  const epoch = admitEpoch(agent.epoch, call.caller.epoch ?? 0n);
  if (epoch !== agent.epoch) await saveAgent(trx, key, { epoch });
  return { ...agent, epoch };
}
